"""Steps for people."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.document import document_of
from hvsvc.hvctl.step_text import KIND_WORDS, duration_text, kind_text, remark, seconds_text, step_lines
from hvsvc.v1 import scaling_pb2
from tests.fakes.service_messages import growth_steps, step


@pytest.mark.parametrize("name", scaling_pb2.Step.Kind.keys())
def test_every_kind_has_words(name: str) -> None:
    word = name.removeprefix("KIND_")
    assert word == "UNSPECIFIED" or word in KIND_WORDS


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (59.94, "59.9 s"),
        (59.96, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (-1, "0.0 s"),
    ],
)
def test_seconds(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text


def test_duration_is_the_services_own() -> None:
    done = step(scaling_pb2.Step.KIND_REBOOT, scaling_pb2.Step.STATE_DONE, took_s=72.3)
    assert duration_text(document_of(done)) == "1 min 12 s"
    assert (
        duration_text(document_of(step(scaling_pb2.Step.KIND_REBOOT, scaling_pb2.Step.STATE_RUNNING))) == ""
    )


def test_evidence_comes_before_the_why_and_is_made_safe() -> None:
    assert remark({"why": "w", "evidence": "e\x1b"}) == "e\\x1b"
    assert remark({"why": "w"}) == "w"
    assert kind_text({"kind": "A_KIND_OF_TOMORROW"}) == "a kind of tomorrow"


def test_lines() -> None:
    assert step_lines([document_of(item) for item in growth_steps(1)]) == [
        "  done     set the memory                  0.4 s  balloon at 1 GiB, guest total 966 MiB",
        "  running  add vCPUs                              vCPUs 2 to 8",
        "  pending  bring CPUs online in the guest         CPUs 2-7 are new",
    ]
