"""Facts to messages."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from google.protobuf import json_format

from hvsvc.domain.allocation import AllocationFacts, Size
from hvsvc.domain.facts import Balloon, DomainState
from hvsvc.domain.topology import Topology
from hvsvc.errors import GuestAgentError, NotPermittedError, Reason
from hvsvc.operations.reads import WatchItem, WatchKind
from hvsvc.service.conversion import domains
from hvsvc.v1 import domain_pb2
from tests.fakes.domains import DB_UUID, WEB_UUID, running, shut_off


def test_a_running_nova_server_in_full() -> None:
    domain = domains.to_domain(running(), 1_700_000_000.25)
    assert (domain.name, domain.uuid, domain.libvirt_name) == (
        f"domains/{WEB_UUID}",
        WEB_UUID,
        "instance-0000335c",
    )
    assert domain.id == 7
    assert domain.state == domain_pb2.DOMAIN_STATE_RUNNING
    assert domain.cpu_time.ToNanoseconds() == 12_500_000_000
    assert (domain.persistent, domain.autostart, domain.managed_save) == (True, False, False)
    assert (domain.security_model, domain.security_label) == ("apparmor", "libvirt-11111111")
    assert domain.security_enforcing
    assert json_format.MessageToDict(domain.vcpus, preserving_proto_field_name=True) == {
        "maximum_config": 8,
        "maximum_live": 4,
        "current_config": 2,
        "current_live": 3,
        "guest_present": 2,
        "guest_online": 1,
    }
    assert json_format.MessageToDict(domain.memory, preserving_proto_field_name=True) == {
        "maximum_config_kib": str(2048 * 1024),
        "maximum_live_kib": str(1536 * 1024),
        "current_config_kib": str(1024 * 1024),
        "current_live_kib": str(768 * 1024),
        "balloon_actual_kib": str(767 * 1024),
        "guest_total_kib": str(700 * 1024),
        "guest_available_kib": str(500 * 1024),
    }
    assert domain.topology.config == domain_pb2.Topology(sockets=2, dies=1, clusters=1, cores=4, threads=1)
    assert domain.topology.live == domain_pb2.Topology(sockets=4, dies=1, clusters=1, cores=1, threads=1)
    assert domain.nova == domain_pb2.NovaServer(
        server_id=WEB_UUID,
        name="web-1",
        flavor="m1.small",
        flavor_vcpus=2,
        flavor_memory_mib=1024,
        project="shop",
        project_id="0123456789abcdef0123456789abcdef",
    )
    assert domain.etag == "0f" * 32
    assert (domain.virt_type, domain.arch, domain.machine) == ("kvm", "x86_64", "pc-q35-7.2")
    assert domain.emulator == "/usr/bin/qemu-system-x86_64"
    assert domain.read_time.ToMilliseconds() == 1_700_000_000_250


def test_rb_09_what_waits_for_a_reboot_is_reported() -> None:
    domain = domains.to_domain(running(), None)
    assert domain.pending_reboot
    assert any("8" in why for why in domain.pending_reboot_reasons)
    assert {"CONFIG_LIVE_DIFFER", "GUEST_CPUS_OFFLINE"} <= {each.reason for each in domain.conditions}


def test_what_is_not_known_is_absent_never_zero() -> None:
    domain: Any = domains.to_domain(shut_off(), None)
    for field in ("id", "cpu_time", "security_label", "security_enforcing", "nova", "read_time"):
        assert not domain.HasField(field), field
    for field in ("maximum_live", "current_live", "guest_present", "guest_online"):
        assert not domain.vcpus.HasField(field), field
    for field in (
        "maximum_live_kib",
        "current_live_kib",
        "balloon_actual_kib",
        "guest_total_kib",
        "guest_available_kib",
    ):
        assert not domain.memory.HasField(field), field
    assert not domain.topology.HasField("config")
    assert not domain.topology.HasField("live")
    assert domain.vcpus.maximum_config == 8


def test_a_transient_domain_has_no_config_values() -> None:
    domain = domains.to_domain(running(config=None, config_xml=None, persistent=False), None)
    assert not domain.vcpus.HasField("maximum_config")
    assert not domain.memory.HasField("current_config_kib")
    assert not domain.topology.HasField("config")
    assert domain.vcpus.maximum_live == 4


def test_zero_that_is_known_is_present() -> None:
    domain = domains.to_domain(running(balloon=Balloon(actual_kib=0), cpu_time_ns=0), None)
    assert domain.memory.HasField("balloon_actual_kib")
    assert domain.HasField("cpu_time")


def test_numa_placement_is_reported() -> None:
    placement = domains.to_domain(shut_off(), None).placement
    assert [(cell.id, cell.cpus, cell.memory_kib) for cell in placement.numa_cells] == [
        (0, "0-3", 1024 * 1024),
        (1, "4-7", 1024 * 1024),
    ]
    assert [(pin.vcpu, pin.cpuset) for pin in placement.vcpu_pins] == [(1, "2-3")]
    assert (placement.cpuset, placement.hugepages, placement.balloon_model) == ("0-3", True, "virtio")
    assert list(placement.memory_devices) == ["dimm"]
    assert list(placement.memory_locks) == ["hostdev"]
    assert placement.max_memory_kib == 4 * 1024 * 1024
    assert not domains.to_domain(running(), None).placement.HasField("max_memory_kib")


def test_ga_01_why_the_guest_is_silent_is_a_condition() -> None:
    error = GuestAgentError(Reason.AGENT_NOT_CONNECTED, "nobody listens \ud83d")
    domain = domains.to_domain(running(guest=None, guest_error=error), None)
    assert not domain.vcpus.HasField("guest_online")
    said = {each.reason: each.message for each in domain.conditions}
    assert said["AGENT_NOT_CONNECTED"] == "nobody listens ?"


def test_the_allocation_is_reported_beside_flavor_and_domain() -> None:
    assert not domains.to_domain(running(), None).HasField("allocation")
    allocated = AllocationFacts(Size(8, 2048), "3f1b5f8e-6d1c-4b2a-8a55-0c2f9f0f7a11")
    domain = domains.to_domain(running(allocation=allocated), None)
    assert domain.allocation == domain_pb2.Allocation(
        vcpus=8, memory_mib=2048, resource_provider="3f1b5f8e-6d1c-4b2a-8a55-0c2f9f0f7a11"
    )
    assert "ALLOCATION_DIFFERS" in {each.reason for each in domain.conditions}
    error = NotPermittedError(Reason.PLACEMENT_NOT_PERMITTED, "not yours")
    silent = domains.to_domain(running(allocation_error=error), None)
    assert not silent.HasField("allocation")
    assert "PLACEMENT_NOT_PERMITTED" in {each.reason for each in silent.conditions}


def test_every_state_has_its_number() -> None:
    assert set(domains.STATES) == set(DomainState)
    assert set(domains.STATES.values()) == set(domain_pb2.DomainState.values()) - {0}
    for state, number in domains.STATES.items():
        assert domain_pb2.DomainState.Name(number) == f"DOMAIN_STATE_{state.name}"


def test_watch_messages() -> None:
    assert {domain_pb2.WatchDomainsResponse.Type.Name(each) for each in domains.WATCH_TYPES.values()} == {
        f"TYPE_{kind.name}" for kind in WatchKind
    }
    changed = domains.to_watch(
        WatchItem(WatchKind.CHANGED, WEB_UUID, "instance-0000335c", running(), "STARTED BOOTED"), 5.0
    )
    assert changed.type == domain_pb2.WatchDomainsResponse.TYPE_CHANGED
    assert changed.event == "STARTED BOOTED"
    assert changed.domain.vcpus.current_live == 3
    removed = domains.to_watch(WatchItem(WatchKind.REMOVED, DB_UUID, "db", None, "UNDEFINED REMOVED"), 5.0)
    assert removed.domain == domain_pb2.Domain(name=f"domains/{DB_UUID}", uuid=DB_UUID, libvirt_name="db")
    end = domains.to_watch(WatchItem(WatchKind.SNAPSHOT_END), 5.0)
    assert not end.HasField("domain")


def test_topology_keeps_all_five_factors() -> None:
    assert domains.to_topology(Topology(2, 3, 5, 7, 11)) == domain_pb2.Topology(
        sockets=2, dies=3, clusters=5, cores=7, threads=11
    )


def test_times_are_kept_to_the_microsecond() -> None:
    assert domains.timestamp(1_700_000_000.123456).ToMicroseconds() == 1_700_000_000_123_456


def test_nova_metadata_in_the_config_alone_still_shows() -> None:
    facts = running()
    assert facts.live is not None
    assert domains.to_domain(replace(facts, live=replace(facts.live, nova=None)), None).nova.name == "web-1"
