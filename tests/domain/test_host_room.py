"""The sum of a host's running domains."""

from __future__ import annotations

from hvsvc.domain.facts import DomainState
from hvsvc.domain.host_room import HostResources, sum_host
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.errors import DeadlineError, Reason
from tests.fakes.worlds import GIB, MIB, facts

RESOURCES = HostResources(pcpus=4, memory_kib=8 * GIB)
LIMITS = HostLimits(vcpu_overcommit_ratio=2.0, memory_overcommit_ratio=1.5)


def test_running_and_paused_domains_count_and_those_off_do_not() -> None:
    grown = {"maximum": 8, "current": 3, "memory_kib": 2 * GIB, "current_memory_kib": GIB}
    room = sum_host(
        RESOURCES,
        LIMITS,
        DomainList(
            [
                facts(grown),
                facts({"maximum": 2, "current": 2}, state=DomainState.PAUSED),
                facts(grown, running=False),
            ]
        ),
    )
    assert (room.running_domains, room.current_vcpus, room.maximum_vcpus) == (2, 5, 10)
    assert (room.current_memory_kib, room.maximum_memory_kib) == (GIB + 512 * MIB, 2 * GIB + 512 * MIB)
    assert (room.vcpu_capacity, room.memory_capacity_kib) == (8, 12 * GIB)
    assert (room.vcpus_left, room.memory_left_kib) == (3, 12 * GIB - GIB - 512 * MIB)


def test_a_domain_that_cannot_be_read_counts_with_what_is_known_of_it() -> None:
    error = DeadlineError(Reason.CALL_TIMED_OUT, "its QEMU is silent")
    silent = UnreadDomain(
        "a",
        "instance-1",
        error,
        id=3,
        maximum_vcpus=6,
        current_vcpus=2,
        maximum_memory_kib=2 * GIB,
        used_memory_kib=GIB,
    )
    unread = [silent, UnreadDomain("b", "instance-2", error, id=4), UnreadDomain("c", "instance-3", error)]
    grown = facts({"maximum": 8, "current": 3, "memory_kib": 2 * GIB, "current_memory_kib": GIB})
    room = sum_host(RESOURCES, LIMITS, DomainList([grown], unread))
    assert (room.running_domains, room.current_vcpus, room.maximum_vcpus) == (3, 5, 14)
    assert (room.current_memory_kib, room.maximum_memory_kib) == (2 * GIB, 4 * GIB)


def test_a_host_that_is_over_its_ratio_has_nothing_left() -> None:
    room = sum_host(
        HostResources(1, GIB),
        HostLimits(1.0, 1.0),
        DomainList([facts({"maximum": 4, "current": 4, "memory_kib": 2 * GIB})]),
    )
    assert (room.vcpus_left, room.memory_left_kib) == (0, 0)
