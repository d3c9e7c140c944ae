"""The comparison of shown and real output notices what it should."""

from __future__ import annotations

import pytest

from tests.documents import assert_fits

REAL = "Steps:\n  done  reboot   6.1 s  domain id 24 to 26\n\nCurrent vCPUs  2 → 8\nGuest memory  512 KiB\n"


@pytest.mark.parametrize(
    "shown",
    [
        ["Steps:", "  done  reboot  0.1 s  domain id 1 to 2", "Current vCPUs 2 → 8", "Guest memory 7 KiB"],
        ["…", "Current vCPUs        2 → 8", "…"],
        ["Steps:", "…"],
    ],
)
def test_only_what_differs_from_run_to_run_is_overlooked(shown: list[str]) -> None:
    assert_fits(shown, REAL)


@pytest.mark.parametrize(
    "shown",
    [
        ["Steps:", "…", "Current vCPUs 2 → 4", "…"],
        ["Steps:"],
        ["…", "Current vCPUs 2 → 8"],
        ["Current vCPUs 2 → 8", "…"],
        ["…", "Guest memory 512 KiB", "more"],
        ["…", "Current vCPUs 2 → 8", "Steps:", "…"],
    ],
)
def test_everything_else_is_noticed(shown: list[str]) -> None:
    with pytest.raises(AssertionError):
        assert_fits(shown, REAL)
