"""Options of every command, before it and after it."""

from __future__ import annotations

import pytest

from hvsvc.hvctl.settings import DEFAULT_TARGET, Settings
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.hvctl.conftest import Hvctl


def test_defaults() -> None:
    settings = Settings()
    assert settings.target == DEFAULT_TARGET == "unix:///run/hvsvc/hvsvc.sock"
    assert (settings.call_timeout_s, settings.wait_timeout_s) == (60, 900)


@pytest.mark.parametrize(("timeout_s", "call_s", "wait_s"), [(5, 5, 5), (300, 60, 300)])
def test_a_call_never_takes_longer_than_its_own_bound(timeout_s: float, call_s: float, wait_s: float) -> None:
    settings = Settings(timeout_s=timeout_s)
    assert (settings.call_timeout_s, settings.wait_timeout_s) == (call_s, wait_s)


def test_an_option_wins_over_the_environment(hvctl: Hvctl, target: str) -> None:
    done = hvctl(
        "vcpucount", "x", "--target", target, "-f", "value", "-c", "guest_online", HVCTL_TARGET="unix:///none"
    )
    assert (done.returncode, done.stdout) == (0, "2\n")


def test_what_stands_before_the_command_holds_where_nothing_stands_after(hvctl: Hvctl) -> None:
    assert hvctl("-f", "value", "-c", "maximum_live", "vcpucount", "x").stdout == "2\n"
    assert hvctl("-f", "json", "vcpucount", "x", "-f", "value", "-c", "maximum_live").stdout == "2\n"


def test_the_timeout_bounds_a_call(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.released.clear()
    done = hvctl("watch", "--timeout", "0.3", "web-1")
    assert done.returncode == 6
    assert "DEADLINE_EXCEEDED" in done.stderr


def test_an_unknown_format_is_bad_usage(hvctl: Hvctl) -> None:
    assert hvctl("list", "-f", "xml").returncode == 2
