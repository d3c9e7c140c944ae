"""What a reader is told of a drift beside the comparison: who does something about it, and why nobody does."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.desired import DesiredState, ReapplyPolicy
from hvsvc.domain.drift import DriftStatus, judge_drift
from hvsvc.domain.drift_report import Progress, report_drift
from hvsvc.domain.facts import DomainFacts, DomainState
from tests.domain.test_drift import ASKED, DESIRED, FLAVOR
from tests.fakes.worlds import MIB, facts, guest_cpus

REPORT, CONFIG, LIVE = ReapplyPolicy.REPORT, ReapplyPolicy.CONFIG, ReapplyPolicy.LIVE
LOST = facts(FLAVOR)
SHRUNK = facts(ASKED | {"current": 2})
TRANSIENT = replace(LOST, config=None, config_xml=None, persistent=False)
WAITING = Progress(2, 1_700_000_010.0, "the next attempt waits")


@pytest.mark.parametrize(
    ("policy", "found", "next_step"),
    [
        (CONFIG, LOST, "hvsvc stores the ceiling again by itself; then reboot softly (hvctl reboot)"),
        (LIVE, LOST, "hvsvc stores the ceiling again by itself; then reboot softly (hvctl reboot)"),
        (LIVE, SHRUNK, "nothing: hvsvc grows it again by itself"),
        (
            LIVE,
            facts(ASKED, ASKED | {"current_memory_kib": 512 * MIB}),
            "nothing: hvsvc grows it again by itself",
        ),
    ],
)
def test_what_hvsvc_brings_back_by_itself_is_not_asked_of_the_reader(
    policy: ReapplyPolicy, found: DomainFacts, next_step: str
) -> None:
    report = report_drift(DESIRED, found, policy, WAITING)
    assert (report.drift.next_step, report.progress) == (next_step, WAITING)
    assert report.drift.differences == judge_drift(DESIRED, found).differences


@pytest.mark.parametrize("found", [LOST, SHRUNK])
def test_what_was_given_up_is_asked_of_the_reader(found: DomainFacts) -> None:
    given_up = Progress(5, None, "hvsvc gave up", given_up=True)
    report = report_drift(DESIRED, found, LIVE, given_up)
    assert (report.drift, report.progress) == (judge_drift(DESIRED, found), given_up)


@pytest.mark.parametrize(
    ("policy", "found", "why"),
    [
        (REPORT, LOST, "the policy is report: hvsvc changes nothing by itself"),
        (REPORT, SHRUNK, "the policy is report: hvsvc changes nothing by itself"),
        (CONFIG, SHRUNK, "the policy is config: hvsvc grows nothing by itself"),
        # where the policy would allow it, and there is nothing to write
        (CONFIG, TRANSIENT, "the domain is transient: there is no stored definition to write to"),
        (LIVE, replace(SHRUNK, state=DomainState.PAUSED), "nothing is grown while the domain does not run"),
        (
            LIVE,
            facts(ASKED, guest=guest_cpus(4, 3)),
            "hvsvc does not bring CPUs online that the guest took offline, nor grow above the ceiling",
        ),
    ],
)
def test_what_hvsvc_leaves_is_asked_of_the_reader_with_the_reason(
    policy: ReapplyPolicy, found: DomainFacts, why: str
) -> None:
    report = report_drift(DESIRED, found, policy, WAITING)
    assert report.drift == judge_drift(DESIRED, found)
    assert report.progress == replace(WAITING, waits_for=why)


def test_what_is_in_sync_waits_for_nothing() -> None:
    report = report_drift(DESIRED, facts(ASKED), LIVE, WAITING)
    assert (report.drift.status, report.progress) == (DriftStatus.IN_SYNC, Progress(attempts=2))


@pytest.mark.parametrize(
    ("desired", "found", "status"),
    [
        (DESIRED, facts(ASKED, FLAVOR), DriftStatus.PENDING_REBOOT),
        (replace(DESIRED, flavor_vcpus=4), LOST, DriftStatus.FLAVOR_CHANGED),
    ],
)
def test_what_nobody_re_applies_is_told_as_it_was_judged(
    desired: DesiredState, found: DomainFacts, status: DriftStatus
) -> None:
    report = report_drift(desired, found, LIVE, WAITING)
    assert report.drift.status is status
    assert (report.drift, report.progress) == (judge_drift(desired, found), WAITING)


def test_the_names_are_those_of_now() -> None:
    old = replace(DESIRED, libvirt_name="old", server_name="old-1")
    named = report_drift(old, facts(ASKED), REPORT, Progress()).desired
    assert (named.libvirt_name, named.server_name) == ("instance-00000001", "web-1")
    assert replace(named, libvirt_name="old", server_name="old-1") == old
    plain = report_drift(old, facts(ASKED | {"nova": False}), REPORT, Progress()).desired
    assert plain.server_name == "old-1", "the last one known"
