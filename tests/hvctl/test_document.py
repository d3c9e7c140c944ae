"""Messages as documents."""

from __future__ import annotations

from hvsvc.hvctl.document import ANY_KEYS, document_of, enum_word, shape_of
from hvsvc.v1 import domain_pb2, scaling_pb2
from tests.fakes.service_messages import domain, off_domain


def test_names_numbers_enums_and_times() -> None:
    document = document_of(domain())
    assert document["state"] == "RUNNING"
    assert document["cpu_time"] == "12.500s"
    assert document["read_time"] == "2023-11-14T22:13:20Z"
    assert document["memory"]["maximum_config_kib"] == 1048576
    assert document["persistent"] is True
    assert document["autostart"] is False
    assert document["nova"]["flavor_memory_mib"] == 512
    assert document["conditions"] == []


def test_a_64_bit_number_stays_a_number() -> None:
    report = domain_pb2.Domain(memory=domain_pb2.Memory(maximum_config_kib=(1 << 64) - 1))
    assert document_of(report)["memory"] == {"maximum_config_kib": 18446744073709551615}


def test_what_is_not_known_is_absent() -> None:
    document = document_of(off_domain())
    assert document["state"] == "SHUT_OFF"
    assert document["vcpus"] == {"maximum_config": 4, "current_config": 1}
    for key in ("id", "cpu_time", "nova", "topology", "security_label", "security_model", "etag"):
        assert key not in document
    assert "state" not in document_of(domain_pb2.Domain())


def test_a_zero_that_is_known_stays() -> None:
    assert document_of(domain_pb2.Vcpus(guest_online=0)) == {"guest_online": 0}
    assert document_of(domain())["placement"]["vcpu_pins"] == [{"vcpu": 0, "cpuset": "3"}]


def test_maps_and_nested_enums() -> None:
    step = scaling_pb2.Step(kind=scaling_pb2.Step.KIND_SET_VCPUS_LIVE, state=scaling_pb2.Step.STATE_DONE)
    assert document_of(step) == {"kind": "SET_VCPUS_LIVE", "state": "DONE"}
    reason = scaling_pb2.Reason(reason="ROUNDED", metadata={"askedKib": "5"})
    assert document_of(reason) == {"reason": "ROUNDED", "metadata": {"askedKib": "5"}}


def test_an_enum_value_of_a_newer_service_is_its_number() -> None:
    assert enum_word(scaling_pb2.Outcome.DESCRIPTOR, 99) == "99"
    assert enum_word(scaling_pb2.Outcome.DESCRIPTOR, 0) is None


def test_shape_has_every_field_of_the_message() -> None:
    shape = shape_of(domain_pb2.Domain.DESCRIPTOR)
    assert set(shape) == {field.name for field in domain_pb2.Domain.DESCRIPTOR.fields}
    assert shape["cpu_time"] is None
    assert set(shape["vcpus"] or ()) == {field.name for field in domain_pb2.Vcpus.DESCRIPTOR.fields}
    assert shape_of(scaling_pb2.Reason.DESCRIPTOR)["metadata"] is ANY_KEYS
