"""A drift for people."""

from __future__ import annotations

from typing import Any

import pytest

from hvsvc.hvctl.drift_text import desired_text, drift_lines

GIB = 1 << 20


@pytest.mark.parametrize(
    ("desired", "text"),
    [
        ({}, "nothing"),
        (
            {"vcpus": 4, "max_vcpus": 8, "memory_kib": GIB // 2, "max_memory_kib": GIB},
            "4 of 8 vCPUs, 512 MiB of 1 GiB",
        ),
        ({"max_vcpus": 8}, "up to 8 vCPUs"),
        ({"max_memory_kib": GIB}, "up to 1 GiB"),
        ({"vcpus": 4, "memory_kib": GIB}, "4 vCPUs, 1 GiB"),
    ],
)
def test_what_was_asked_for(desired: dict[str, Any], text: str) -> None:
    assert desired_text(desired) == text


@pytest.mark.parametrize(
    ("status", "attempts", "line"),
    [
        ("PENDING_REBOOT", 1, "Re-applied: once since the drift began"),
        ("CEILING_LOST", 3, "Re-applied: 3 times since the drift began"),
        ("IN_SYNC", 1, "Re-applied: once before"),
        ("FLAVOR_CHANGED", 2, "Re-applied: 2 times before"),
    ],
)
def test_how_often_it_was_re_applied(status: str, attempts: int, line: str) -> None:
    assert line in drift_lines({"libvirt_name": "web", "status": status, "attempts": attempts})


def test_the_next_step_can_be_copied() -> None:
    drift = {"libvirt_name": "instance-1", "next_step": "hvctl drift DOMAIN --policy config"}
    assert drift_lines(drift)[-1] == "next: hvctl drift instance-1 --policy config"
    assert drift_lines(drift | {"server_name": "a b"})[-1] == "next: hvctl drift 'a b' --policy config"
