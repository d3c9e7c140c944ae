"""What the stored definition holds of a target, and what of it waits for a reboot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hvsvc.domain.outcome import Outcome
from hvsvc.domain.target import Method, Target
from hvsvc.domain.verify_stored import describe_pending, differs, verify_ceiling, verify_config
from hvsvc.errors import Reason
from tests.fakes.worlds import GIB, facts

ROOMY: dict[str, Any] = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": GIB}


def test_a_number_that_differs_names_both_and_makes_the_outcome_partial() -> None:
    outcome, note = differs("live vCPUs", 8, 7)
    assert outcome is Outcome.PARTIAL
    assert note.reason is Reason.TARGET_NOT_REACHED
    assert note.message.startswith("live vCPUs: 8 was asked, 7 was read back; ")


def test_sizes_are_told_as_people_write_them() -> None:
    target = Target(Method.RAISE_CEILING, max_memory_kib=4 * GIB)
    ((_, note),) = verify_config(facts(ROOMY), target)
    assert note.metadata == {"value": "stored maximum memory", "asked": "4 GiB", "found": "2 GiB"}
    gone = replace(facts(ROOMY), config=None, config_xml=None)
    ((_, note),) = verify_config(gone, target)
    assert note.metadata["found"] == "none"


@pytest.mark.parametrize(("method", "findings"), [(Method.RAISE_CEILING, 2), (Method.SCALE_DOMAIN, 0)])
def test_more_than_asked_is_enough_for_scale_alone(method: Method, findings: int) -> None:
    target = Target(method, max_vcpus=4, max_memory_kib=GIB)
    assert len(list(verify_config(facts(ROOMY), target))) == findings
    assert bool(list(verify_ceiling(facts(ROOMY), target, rebooted=False))) is bool(findings)


def test_rb_09_what_waits_is_told_with_both_ceilings() -> None:
    domain = facts({**ROOMY, "maximum": 16, "topology": "4x4x1", "memory_kib": 4 * GIB}, live=ROOMY)
    assert domain.config is not None
    assert domain.live is not None
    assert list(describe_pending(domain.config, domain.live)) == [
        "maximum vCPUs 8, stored 16",
        "maximum memory 2 GiB, stored 4 GiB",
        "topology 8x1x1x1x1, stored 4x1x1x4x1",
    ]
    assert list(describe_pending(domain.live, domain.live)) == []


def test_mem_08_rounding_at_a_start_is_nothing_that_waits() -> None:
    domain = facts({"memory_kib": 976563}, live={"memory_kib": 976896})
    assert domain.config is not None
    assert domain.live is not None
    assert list(describe_pending(domain.config, domain.live)) == []
    more = replace(domain.config, memory_kib=976896 + 1)
    assert list(describe_pending(more, domain.live)) == ["maximum memory 954 MiB, stored 976897 KiB"]
