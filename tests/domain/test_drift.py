"""Each status of drift, from what makes it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.desired import DesiredState
from hvsvc.domain.drift import DriftStatus, find_lost_ceiling, judge_absence, judge_drift
from hvsvc.domain.facts import Balloon, DomainFacts, DomainState, ServerFacts
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.errors import HvsvcError, NotFoundError, Reason, UnavailableError
from tests.fakes.worlds import GIB, MIB, SERVER, UUID, facts, guest_cpus

DESIRED = DesiredState(
    UUID,
    "instance-00000001",
    "unix",
    1000.0,
    max_vcpus=8,
    max_memory_kib=2 * GIB,
    vcpus=4,
    memory_kib=GIB,
    server_name="web-1",
    seen_in_nova=True,
    nova_host="cmp1",
    is_server=True,
    flavor="small",
    flavor_vcpus=2,
    flavor_memory_mib=512,
)
ASKED = {"nova": True, "maximum": 8, "current": 4, "memory_kib": 2 * GIB, "current_memory_kib": GIB}
FLAVOR = {"nova": True}


def status(found: DomainFacts, desired: DesiredState = DESIRED) -> DriftStatus:
    return judge_drift(desired, found).status


def balloon(size_kib: int) -> Balloon:
    return Balloon(size_kib, size_kib, size_kib // 2, 1000)


@pytest.mark.parametrize(
    ("found", "wanted", "differences"),
    [
        (facts(ASKED), DriftStatus.IN_SYNC, []),
        # more than asked is no drift
        (facts(ASKED | {"maximum": 16, "current": 8}), DriftStatus.IN_SYNC, []),
        (
            facts(FLAVOR),
            DriftStatus.CEILING_LOST,
            ["stored maximum vCPUs: 8 asked, 2 found", "stored maximum memory: 2 GiB asked, 512 MiB found"],
        ),
        # the stored definition decides: a live ceiling is gone with the next start
        (facts(FLAVOR, ASKED), DriftStatus.CEILING_LOST, None),
        (
            facts(ASKED | {"memory_kib": GIB}),
            DriftStatus.CEILING_LOST,
            ["stored maximum memory: 2 GiB asked, 1 GiB found"],
        ),
        (
            facts(ASKED, FLAVOR),
            DriftStatus.PENDING_REBOOT,
            ["live maximum vCPUs: 8 asked, 2 found", "live maximum memory: 2 GiB asked, 512 MiB found"],
        ),
        (
            facts(ASKED | {"current": 2}, ASKED),
            DriftStatus.SHRUNK,
            ["stored current vCPUs: 4 asked, 2 found"],
        ),
        (facts(ASKED, ASKED | {"current": 3}), DriftStatus.SHRUNK, None),
        (
            facts(ASKED, guest=guest_cpus(4, 3)),
            DriftStatus.SHRUNK,
            ["guest CPUs online: 4 asked, 3 found"],
        ),
        (
            facts(ASKED, balloon=balloon(512 * MIB)),
            DriftStatus.SHRUNK,
            ["live memory: 1 GiB asked, 512 MiB found"],
        ),
        # lowered on purpose, as an operator did who was told "in sync": it takes a start
        (
            facts(ASKED, ASKED | {"maximum": 10, "current": 5, "memory_kib": 3 * GIB}),
            DriftStatus.PENDING_REBOOT,
            [
                "live maximum vCPUs: 8 asked, 10 found",
                "live current vCPUs: 4 asked, 5 found",
                "live maximum memory: 2 GiB asked, 3 GiB found",
            ],
        ),
        # somebody raised the running domain and the stored one further
        (facts(ASKED | {"maximum": 16}, ASKED | {"maximum": 20}), DriftStatus.IN_SYNC, []),
        # the balloon has not inflated yet: more than asked
        (facts(ASKED, balloon=balloon(2 * GIB)), DriftStatus.IN_SYNC, []),
        (facts(ASKED | {"balloon": "none"}), DriftStatus.IN_SYNC, []),
        (facts(ASKED, running=False), DriftStatus.IN_SYNC, []),
        (facts(FLAVOR, running=False), DriftStatus.CEILING_LOST, None),
        (facts(ASKED, state=DomainState.PAUSED), DriftStatus.IN_SYNC, []),
        (
            replace(facts(ASKED), config=None, config_xml=None, persistent=False),
            DriftStatus.CEILING_LOST,
            None,
        ),
    ],
)
def test_what_is_on_the_host(found: DomainFacts, wanted: DriftStatus, differences: list[str] | None) -> None:
    drift = judge_drift(DESIRED, found)
    assert drift.status is wanted
    if differences is not None:
        assert list(drift.differences) == differences
    assert bool(drift.next_step) is (wanted is not DriftStatus.IN_SYNC or found.live is None)


def test_of_a_server_that_is_off_it_says_that_its_start_loses_the_ceiling() -> None:
    off = facts(ASKED, running=False)
    assert "is lost" in judge_drift(DESIRED, off).next_step
    # a suspended one resumes with the definition in its image, and nobody makes one anew for a domain not of Nova's
    assert judge_drift(DESIRED, replace(off, managed_save=True)).next_step == ""
    assert judge_drift(DESIRED, facts(ASKED | {"nova": False}, running=False)).next_step == ""


def test_how_to_grow_again_names_the_guests_cpus_where_they_are_what_lacks() -> None:
    """A scale to the vCPUs that are there brings none of the guest's CPUs online unasked."""
    asleep = judge_drift(DESIRED, facts(ASKED, guest=guest_cpus(4, 3))).next_step
    assert asleep.startswith("grow it again (hvctl scale DOMAIN --vcpus 4 --online all --memory 1GiB)")
    small = judge_drift(DESIRED, facts(ASKED, balloon=balloon(512 * MIB))).next_step
    assert small.startswith("grow it again (hvctl scale DOMAIN --vcpus 4 --memory 1GiB)")
    # more are offline than lack
    small = judge_drift(
        DESIRED, facts(ASKED | {"current": 8}, balloon=balloon(512 * MIB), guest=guest_cpus(8, 5))
    ).next_step
    assert "--online" not in small


def test_a_resize_explains_everything_else() -> None:
    drift = judge_drift(replace(DESIRED, flavor="big", flavor_vcpus=4), facts(FLAVOR))
    assert drift.status is DriftStatus.FLAVOR_CHANGED
    assert drift.differences == (
        "flavor: big (4 vCPUs, 512 MiB) when it was asked, small (2 vCPUs, 512 MiB) now: the server was resized since",
    )


def test_the_factors_asked_for_are_part_of_the_ceiling() -> None:
    exact = replace(DESIRED, topology=TopologyPolicy(TopologyMode.EXACT, Topology(2, cores=4)))
    assert status(facts(ASKED | {"topology": "2x4x1"}), exact) is DriftStatus.IN_SYNC
    found = facts(ASKED)
    assert status(found, exact) is DriftStatus.CEILING_LOST
    lost = find_lost_ceiling(exact, found.config)
    assert (lost.max_vcpus, lost.topology) == (None, True)


def test_what_was_not_asked_never_drifts() -> None:
    nothing = replace(DESIRED, max_vcpus=None, max_memory_kib=None, vcpus=None, memory_kib=None)
    assert status(facts(FLAVOR), nothing) is DriftStatus.IN_SYNC


def test_only_what_is_lost_is_to_be_written() -> None:
    lost = find_lost_ceiling(DESIRED, facts(ASKED | {"maximum": 16, "memory_kib": GIB}).config)
    assert (lost.max_vcpus, lost.max_memory_kib, lost.topology) == (None, 2 * GIB, False)
    assert not find_lost_ceiling(DESIRED, None)


GONE = NotFoundError(Reason.SERVER_NOT_FOUND, "no such server")
AWAY = UnavailableError(Reason.NOVA_UNAVAILABLE, "HTTP 503")


def server(**changes: Any) -> ServerFacts:
    return replace(SERVER, **changes)


@pytest.mark.parametrize(
    ("desired", "answer", "error", "wanted"),
    [
        ({"is_server": False}, None, None, DriftStatus.GONE),
        ({}, None, GONE, DriftStatus.GONE),
        # a member's credential does not see other projects' servers: its 404 proves nothing
        ({"seen_in_nova": False}, None, GONE, DriftStatus.UNKNOWN),
        ({}, None, AWAY, DriftStatus.UNKNOWN),
        ({}, None, None, DriftStatus.UNKNOWN),
        ({}, server(status="DELETED"), None, DriftStatus.GONE),
        ({}, server(task_state="reboot_started_hard"), None, DriftStatus.UNKNOWN),
        ({}, server(), None, DriftStatus.UNKNOWN),
        ({}, server(host="cmp2"), None, DriftStatus.MOVED),
        ({}, server(host=None, status="SHELVED_OFFLOADED"), None, DriftStatus.MOVED),
        # a member's credential is not told where the server is, and it may be here, undefined behind Nova's back
        ({}, server(host=None), None, DriftStatus.UNKNOWN),
        ({"nova_host": None}, server(host=None), None, DriftStatus.UNKNOWN),
        # nor may Nova's name of this host have been
        ({"nova_host": None}, server(host="cmp1"), None, DriftStatus.UNKNOWN),
        ({"nova_host": None}, server(host=None, status="SHELVED_OFFLOADED"), None, DriftStatus.MOVED),
    ],
)
def test_a_domain_that_is_not_here_is_explained_by_nova_alone(
    desired: dict[str, Any], answer: ServerFacts | None, error: HvsvcError | None, wanted: DriftStatus
) -> None:
    drift = judge_absence(replace(DESIRED, **desired), answer, error)
    assert drift.status is wanted
    assert drift.differences
    assert drift.next_step


def test_where_it_is_now_is_said() -> None:
    moved = judge_absence(DESIRED, server(host="cmp2"), None)
    assert "host cmp2" in moved.differences[0]
    assert "the host that runs it" in moved.next_step
    shelved = judge_absence(DESIRED, server(host=None, status="SHELVED_OFFLOADED"), None)
    assert "SHELVED_OFFLOADED" in shelved.differences[0]
    assert "until it is unshelved" in shelved.next_step
