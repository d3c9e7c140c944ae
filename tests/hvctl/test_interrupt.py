"""Ctrl-C at any moment ends hvctl at once; while a change runs is tested with the change and the display."""

from __future__ import annotations

import signal
import subprocess

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.hvctl.conftest import HVCTL, clean_env


def watching(target: str, **how: object) -> subprocess.Popen[str]:
    return subprocess.Popen(  # type: ignore[call-overload,no-any-return]
        [*HVCTL, "watch"],
        env=clean_env(HVCTL_TARGET=target),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **how,
    )


def test_a_watch_ends_with_130_and_no_traceback(fake: FakeHvsvc, target: str) -> None:
    fake.released.clear()
    process = watching(target)
    assert fake.holding.wait(30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, "", "\nhvctl: interrupted\n")


def test_an_interrupt_that_the_shell_made_ignored_stays_so(fake: FakeHvsvc, target: str) -> None:
    fake.released.clear()
    process = watching(target, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
    assert fake.holding.wait(30)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=30)
    assert process.returncode == -signal.SIGTERM
