"""Single fields: absent, zero, negative, huge and hostile."""

from __future__ import annotations

import pytest

from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.service.conversion import fields
from hvsvc.v1 import scaling_pb2


def refused(field: str) -> pytest.RaisesExc[InvalidArgumentError]:
    return pytest.RaisesExc(InvalidArgumentError, check=lambda error: error.field == field)


def test_cpu_08_absent_is_not_zero() -> None:
    assert fields.count(scaling_pb2.SetVcpusRequest(), "vcpus") is None
    with refused("vcpus"):
        fields.count(scaling_pb2.SetVcpusRequest(vcpus=0), "vcpus")


@pytest.mark.parametrize("vcpus", [1, 2, 65_535])
def test_counts_in_range(vcpus: int) -> None:
    assert fields.count(scaling_pb2.SetVcpusRequest(vcpus=vcpus), "vcpus") == vcpus


@pytest.mark.parametrize("vcpus", [65_536, 2**32 - 1])
def test_cpu_08_huge_counts_are_refused_with_the_limit(vcpus: int) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        fields.count(scaling_pb2.SetVcpusRequest(vcpus=vcpus), "vcpus")
    assert caught.value.metadata["maximum"] == "65535"
    assert str(vcpus) in caught.value.message


def test_sizes() -> None:
    assert fields.size_kib(scaling_pb2.SetMemoryRequest(), "memory_kib") is None
    assert fields.size_kib(scaling_pb2.SetMemoryRequest(memory_kib=2**53), "memory_kib") == 2**53
    for size in (0, 2**53 + 1, 2**64 - 1):
        with refused("memory_kib"):
            fields.size_kib(scaling_pb2.SetMemoryRequest(memory_kib=size), "memory_kib")


@pytest.mark.parametrize(
    "name",
    [
        "web-1",
        "domains/11111111-2222-4333-8444-555555555555",
        "my web (old)",
        "größe",
        "x" * 255,
        "a/b;rm -rf",
    ],
)
def test_names(name: str) -> None:
    assert fields.domain_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", "web ", "\tweb", "we\x00b", "we\nb", "we\x1b[31mb", "we\u2028b", "x" * 256, "\x7f"]
)
def test_names_that_are_none(name: str) -> None:
    with refused("name"):
        fields.domain_name(name)


def test_a_refused_name_is_shown_harmlessly() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        fields.domain_name("\x1b[2J" * 100)
    assert "\x1b" not in caught.value.message
    assert len(caught.value.message) < 300


def test_server_name_may_be_absent() -> None:
    assert fields.server_name("", "nova_server") == ""
    with refused("nova_server"):
        fields.server_name("a\nb", "nova_server")


@pytest.mark.parametrize("name", ["operations/op-1", "operations/0f_A"])
def test_operation_ids(name: str) -> None:
    assert fields.operation_id(name) == name.removeprefix("operations/")


@pytest.mark.parametrize(
    "name",
    [
        "",
        "op-1",
        "operations/",
        "operations/a/b",
        "operations/../x",
        "operations/" + "x" * 65,
        "operations/a\n",
    ],
)
def test_operation_names_that_are_none(name: str) -> None:
    with refused("name"):
        fields.operation_id(name)


def test_request_id_is_a_uuid_in_lower_case() -> None:
    assert fields.request_id("") == ""
    assert fields.request_id("AAAAAAAA-BBBB-4CCC-8DDD-EEEEEEEEEEEE") == "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"


@pytest.mark.parametrize(
    "value",
    [
        "1",
        "aaaaaaaabbbb4ccc8dddeeeeeeeeeeee",
        "{aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee}",
        "00000000-0000-0000-0000-000000000000",
        "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee\n",
        "\u0661aaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee",
    ],
)
def test_request_ids_that_are_no_uuid(value: str) -> None:
    with refused("request_id"):
        fields.request_id(value)


def test_etags() -> None:
    assert fields.etag("") == ""
    assert fields.etag("0f" * 32) == "0f" * 32
    for value in ("a b", "x" * 129, "\n", "<xml/>"):
        with refused("etag"):
            fields.etag(value)


def test_unknown_enum_numbers_are_refused_with_the_known_names() -> None:
    choices = {0: "never", 1: "never", 2: "soft"}
    assert fields.choice(choices, scaling_pb2.RebootMode, 2, "reboot") == "soft"
    for number in (3, -1, 2**31 - 1):
        with pytest.raises(InvalidArgumentError) as caught:
            fields.choice(choices, scaling_pb2.RebootMode, number, "reboot")
        assert caught.value.reason is Reason.INVALID_VALUE
        assert "REBOOT_MODE_NEVER, REBOOT_MODE_SOFT" in caught.value.message


@pytest.mark.parametrize("value", [0, 65_536, 2**32 - 1])
def test_factors_out_of_range(value: int) -> None:
    with refused("topology.exact.cores"):
        fields.factor(value, "topology.exact.cores")
    assert fields.factor(0, "topology.exact.dies", zero_is_one=True) == 1
