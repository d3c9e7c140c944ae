"""The lab resets a guest that hangs while it boots, once; without the lab, since no guest there hangs on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.cloud import Lab, Server

SERVER = Server(
    "6b5f16a8-3a41-426d-8a29-7cd0beda2ea6", "web", "instance-00000001", "demo", Path("console.log")
)


class HangingLab(Lab):
    """One guest, which boots after so many resets; it is its own domain."""

    def __init__(self, boots_after: int, domain_id: int | None = 7) -> None:
        self._boots_after = boots_after
        self._domain_id = domain_id
        self.resets = 0

    def console(self, server: Server) -> str:
        return "BOOTED" if self.resets >= self._boots_after else "soft lockup"

    def domain(self, server: Server) -> HangingLab:
        return self

    def domain_id(self, server: Server) -> int | None:
        return self._domain_id

    def reset(self) -> None:
        self.resets += 1


def test_a_guest_that_hangs_is_reset_once() -> None:
    lab = HangingLab(boots_after=1)
    lab.wait_booted(SERVER, timeout_s=0.1)
    assert lab.resets == 1


def test_a_guest_that_boots_is_left_alone() -> None:
    lab = HangingLab(boots_after=0)
    lab.wait_booted(SERVER, timeout_s=0.1)
    assert lab.resets == 0


@pytest.mark.parametrize(("boots_after", "domain_id", "resets"), [(2, 7, 1), (1, None, 0)])
def test_a_guest_that_hangs_again_or_is_off_is_a_failure(
    boots_after: int, domain_id: int | None, resets: int
) -> None:
    lab = HangingLab(boots_after, domain_id)
    with pytest.raises(AssertionError, match="no web to boot"):
        lab.wait_booted(SERVER, timeout_s=0.1)
    assert lab.resets == resets
