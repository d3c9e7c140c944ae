"""Steps on a terminal as they happen."""

from __future__ import annotations

import re

import pytest

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import ended, growth_steps, running
from tests.hvctl.conftest import HVCTL, clean_env
from tests.hvctl.terminal_session import TerminalSession

ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@pytest.fixture
def session(fake: FakeHvsvc, target: str) -> TerminalSession:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.released.clear()
    args = [*HVCTL, "scale", "web-1", "--vcpus", "8"]
    return TerminalSession(args, clean_env(HVCTL_TARGET=target, TERM="xterm-256color", COLUMNS="120"))


def test_each_step_is_shown_while_it_runs_and_with_its_time(
    session: TerminalSession, fake: FakeHvsvc
) -> None:
    with session:
        session.read_until(r"0\.4 s")
        assert fake.holding.wait(30)
        # its own time goes on while it runs; which of the tenths are drawn is the machine's affair
        shown = ESCAPES.sub("", session.read_until(r"add vCPUs\W[^\n]*?(0\.[1-9]|[1-9]\.\d) s"))
        assert "running  add vCPUs" in shown
        assert "pending  bring CPUs online in the guest" in shown
        assert "complete" not in shown
        fake.released.set()
        assert session.finish() == 0
    lines = [line.strip() for line in ESCAPES.sub("", session.output).replace("\r", "\n").split("\n")]
    assert "done  add vCPUs                       1.4 s  live vCPUs 8" in lines
    assert "done  bring CPUs online in the guest  2.4 s  the guest uses 8 of 8 CPUs" in lines
    result = lines[lines.index("web-1 (instance-0000335c): complete, each number read back") :]
    assert not any("live vCPUs 8" in line for line in result), "the steps are not told twice"


def test_a_step_of_a_hostile_guest_cannot_act_on_the_terminal(
    session: TerminalSession, fake: FakeHvsvc
) -> None:
    steps = growth_steps(1)
    steps[0].evidence = "\x1b]0;owned\x07[red]x[/red]"
    fake.reports[1] = running(steps)
    with session:
        session.read_until(r"\[red\]x\[/red\]")
        fake.released.set()
        session.finish()
    assert "\x1b]0;" not in session.output
    assert "\\x1b]0;owned\\x07[red]x[/red]" in session.output


def test_a_lost_connection_is_said_and_the_display_goes_on(session: TerminalSession, fake: FakeHvsvc) -> None:
    fake.errors["WatchOperation"] = [None, None]
    fake.released.set()
    with session:
        session.read_until("connection lost; the operation goes on; trying again")
        assert session.finish() == 0


def test_ctrl_c_leaves_the_operation_and_says_how_to_go_on(session: TerminalSession, fake: FakeHvsvc) -> None:
    with session:
        assert fake.holding.wait(30)
        session.read_until("running")
        session.interrupt()
        assert session.finish() == 130
    shown = ESCAPES.sub("", session.output)
    assert "hvctl: operations/0b7c goes on" in shown
    assert "watch it:  hvctl operations watch operations/0b7c" in shown
    assert "cancel it: hvctl operations cancel operations/0b7c" in shown
    assert fake.requests("CancelOperation") == []
