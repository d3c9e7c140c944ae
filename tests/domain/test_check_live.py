"""What forbids live values now, each refusal with the value that would work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.check_live import (
    check_live_after_start,
    check_live_memory,
    check_live_vcpus,
    check_running,
    current_memory_kib,
    has_balloon,
    memory_reached,
    warn_split_core,
)
from hvsvc.domain.facts import Balloon, DomainState
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.target import Method, Target
from hvsvc.errors import HvsvcError, Reason, UnimplementedError
from tests.fakes.worlds import GIB, MIB, domain_xml, facts, world

LIMITS = HostLimits()
ROOMY: dict[str, Any] = {
    "maximum": 8,
    "current": 2,
    "memory_kib": 2 * GIB,
    "current_memory_kib": GIB,
}


def vcpus(wanted: int, *, limits: HostLimits = LIMITS, **xml: Any) -> list[HvsvcError]:
    return list(check_live_vcpus(world(facts({**ROOMY, **xml}), limits=limits), wanted))


def memory(wanted: int, *, limits: HostLimits = LIMITS, **changes: Any) -> list[HvsvcError]:
    return list(check_live_memory(world(facts(ROOMY, **changes), limits=limits), wanted))


def reasons(errors: list[HvsvcError]) -> list[Reason]:
    return [error.reason for error in errors]


def test_cpu_01_above_the_live_ceiling_names_asked_ceiling_and_next_step() -> None:
    (error,) = vcpus(9)
    assert error.reason is Reason.ABOVE_LIVE_CEILING
    assert error.metadata == {"asked": "9", "ceiling": "8", "pending": "false"}
    assert "hvctl raise" in error.message
    assert vcpus(8) == []


def test_rb_09_a_ceiling_that_waits_for_its_reboot_is_named() -> None:
    there = world(facts({**ROOMY, "maximum": 16, "memory_kib": 4 * GIB}, live=ROOMY))
    for error in (*check_live_vcpus(there, 12), *check_live_memory(there, 3 * GIB)):
        assert error.reason is Reason.ABOVE_LIVE_CEILING
        assert error.metadata["pending"] == "true"
        assert "waits for a reboot" in error.message
        assert "hvctl reboot" in error.message


def test_the_live_ceiling_counts_even_where_the_stored_one_is_lower() -> None:
    there = world(facts({**ROOMY, "maximum": 4}, live=ROOMY))
    assert list(check_live_vcpus(there, 6)) == []


def test_cpu_05_a_live_shrink_is_refused_with_the_floor_and_the_reason() -> None:
    (kvm,) = vcpus(1)
    (tcg,) = vcpus(1, virt_type="qemu")
    assert kvm.reason is tcg.reason is Reason.LIVE_VCPU_SHRINK
    assert kvm.metadata == {"asked": "1", "current": "2", "lowest": "2"}
    assert "TCG" in tcg.message
    assert "TCG" not in kvm.message


def test_cpu_09_no_hotplug_on_the_architecture() -> None:
    (error,) = vcpus(4, arch="aarch64", machine="virt")
    assert isinstance(error, UnimplementedError)
    assert error.metadata == {"arch": "aarch64"}


def test_without_acpi_a_guest_is_not_told_of_vcpus() -> None:
    assert reasons(vcpus(4, acpi=False)) == [Reason.NO_ACPI]
    assert vcpus(4, acpi=False, arch="s390x") == []


@pytest.mark.parametrize("state", [DomainState.PAUSED, DomainState.IN_SHUTDOWN, DomainState.PMSUSPENDED])
def test_rb_06_nothing_live_unless_running(state: DomainState) -> None:
    (error,) = check_running(facts(ROOMY, state=state))
    assert error.reason is Reason.DOMAIN_NOT_RUNNING
    assert error.metadata == {"state": state.value}
    assert list(check_running(facts(ROOMY, state=DomainState.IDLE))) == []


def test_rb_06_an_off_domain_has_one_refusal_not_a_crash() -> None:
    off = world(facts(ROOMY, running=False))
    assert reasons(list(check_live_vcpus(off, 4))) == [Reason.DOMAIN_NOT_RUNNING]
    assert reasons(list(check_live_memory(off, GIB))) == [Reason.DOMAIN_NOT_RUNNING]
    assert current_memory_kib(off.domain) is None


def test_growth_is_measured_beside_the_hosts_other_domains() -> None:
    tight = HostLimits(vcpu_overcommit_ratio=2, memory_overcommit_ratio=0.15)
    (error,) = vcpus(8, limits=tight)
    assert (error.reason, error.metadata["highest"]) == (Reason.ABOVE_HOST_CAPACITY, "6")
    (error,) = memory(2 * GIB, limits=tight)
    assert error.metadata["highestKib"] == str(1638 * MIB)
    assert memory(GIB, limits=tight) == []


def test_mem_04_above_the_live_maximum() -> None:
    (error,) = memory(3 * GIB)
    assert error.reason is Reason.ABOVE_LIVE_CEILING
    assert error.metadata == {"asked": "3 GiB", "ceiling": "2 GiB", "pending": "false"}


@pytest.mark.parametrize("model", ["none", ""])
def test_mem_02_without_a_balloon_memory_is_fixed_and_the_config_path_is_offered(model: str) -> None:
    there = world(facts({**ROOMY, "balloon": model}, balloon=Balloon()))
    (error,) = check_live_memory(there, 2 * GIB)
    assert error.reason is Reason.NO_BALLOON
    assert "stored values only" in error.message
    assert not has_balloon(parse_definition(domain_xml(balloon=model)))
    assert has_balloon(parse_definition(domain_xml()))


def test_memory_is_never_grown_past_the_limit_at_which_the_host_kills_the_domain() -> None:
    limit = f"<memtune><hard_limit unit='KiB'>{1536 * MIB}</hard_limit></memtune>"
    there = world(facts({**ROOMY, "extra": limit}))
    (error,) = check_live_memory(there, 2 * GIB)
    assert error.reason is Reason.UNSUPPORTED_DEFINITION
    assert error.metadata == {"askedKib": str(2 * GIB), "highestKib": str(1536 * MIB)}
    assert list(check_live_memory(there, 1536 * MIB)) == []


def test_a_shrink_stops_at_the_floor() -> None:
    # half of 1 GiB is used, and 128 MiB stay in reserve
    assert memory(640 * MIB) == []
    (error,) = memory(639 * MIB)
    assert error.reason is Reason.BELOW_MEMORY_FLOOR
    assert error.metadata["lowestKib"] == str(640 * MIB)


def test_a_guest_with_no_room_at_all_keeps_what_it_has() -> None:
    (error,) = memory(GIB - MIB, balloon=Balloon(GIB, GIB, 0, 1000))
    assert error.metadata["lowestKib"] == str(GIB)
    assert memory(GIB, balloon=Balloon(GIB, GIB, 0, 1000)) == []


def test_no_shrink_where_nobody_knows_what_the_guest_uses() -> None:
    assert reasons(memory(512 * MIB, balloon=Balloon(GIB))) == [Reason.MEMORY_USE_UNKNOWN]


def test_mem_08_a_size_within_a_mib_is_reached() -> None:
    assert memory_reached(GIB - MIB + 1, GIB)
    assert not memory_reached(GIB - MIB, GIB)
    assert not memory_reached(None, GIB)


def test_mem_07_the_balloon_not_the_used_figure_says_what_the_guest_has() -> None:
    there = facts(ROOMY, used_memory_kib=2 * GIB, balloon=Balloon(GIB))
    assert current_memory_kib(there) == GIB
    assert current_memory_kib(replace(there, balloon=Balloon())) == 2 * GIB
    assert current_memory_kib(replace(there, balloon=Balloon(), used_memory_kib=None)) == GIB


def test_after_a_start_the_same_things_forbid_a_growth() -> None:
    there = world(facts(ROOMY))
    target = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB + GIB // 2)
    limit = f"<memtune><hard_limit unit='KiB'>{GIB}</hard_limit></memtune>"
    started = parse_definition(
        domain_xml(**{**ROOMY, "arch": "aarch64", "balloon": "none", "cpuset": "99", "extra": limit})
    )
    assert reasons(list(check_live_after_start(there, started, target))) == [
        Reason.NO_BALLOON,
        Reason.UNSUPPORTED_DEFINITION,
        Reason.NO_VCPU_HOTPLUG,
        Reason.CPUSET_NOT_ON_HOST,
    ]
    there_already = Target(Method.SCALE_DOMAIN, vcpus=2, memory_kib=2 * GIB)  # without a balloon, all of it
    assert list(check_live_after_start(there, started, there_already)) == []


def test_mem_08_without_a_balloon_the_guest_has_the_maximum_rounded_up_after_a_start() -> None:
    # 976563 KiB are 953.7 MiB, and start as 954
    odd = domain_xml(maximum=4, memory_kib=976563, current_memory_kib=976563, balloon="none")
    started = parse_definition(odd)
    below, all_of_it = (Target(Method.SCALE_DOMAIN, memory_kib=mib * MIB) for mib in (953, 954))
    there = world(facts(ROOMY))
    assert reasons(list(check_live_after_start(there, started, below))) == [Reason.NO_BALLOON]
    assert list(check_live_after_start(there, started, all_of_it)) == []


@pytest.mark.parametrize(
    ("topology", "maximum", "count", "words"),
    [
        ("2x4x1", 8, 3, "a socket of 4 (2x1x1x4x1); the guest sees an incomplete socket; 4 would not"),
        ("4x4x1", 16, 6, "4 or 8 would not"),
        ("1x4x2", 8, 3, "a socket of 8"),
        ("4x1x2", 8, 1, "2 would not"),
        ("4x1x2", 8, 7, "6 or 8 would not"),
        ("2x4x1", 8, 4, None),
        ("2x4x1", 8, 8, None),
        ("8x1x1", 8, 5, None),
        ("", 8, 5, None),
    ],
)
def test_numa_07_a_count_that_splits_a_socket_or_a_core_is_a_warning(
    topology: str, maximum: int, count: int, words: str | None
) -> None:
    live = parse_definition(domain_xml(maximum=maximum, current=1, topology=topology))
    notes = list(warn_split_core(live, count))
    if words is None:
        assert notes == []
        return
    (note,) = notes
    assert note.reason is Reason.SPLIT_CORE
    assert words in note.message
    assert note.metadata["asked"] == str(count)
