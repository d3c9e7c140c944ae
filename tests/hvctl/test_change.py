"""A change off a terminal: interrupted, or lost on the way."""

from __future__ import annotations

import json
import signal
import subprocess

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import ended, error_info, growth_steps, running, status
from tests.hvctl.conftest import HVCTL, Hvctl, clean_env


def interrupted(fake: FakeHvsvc, target: str, *words: str) -> tuple[int, str, str]:
    """Ctrl-C while the service holds the call: exit code, stdout and stderr."""
    process = subprocess.Popen(
        [*HVCTL, *words],
        env=clean_env(HVCTL_TARGET=target),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert fake.holding.wait(30)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


def test_ctrl_c_in_a_pipe_says_that_the_operation_goes_on(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.released.clear()
    code, out, err = interrupted(fake, target, "scale", "web-1", "--vcpus", "8", "-f", "json")
    assert (code, out) == (130, "")
    assert "hvctl: operations/0b7c goes on\n  watch it:  hvctl operations watch operations/0b7c" in err
    assert "Traceback" not in err


def test_a_lost_connection_is_said_once_and_the_result_still_comes(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.errors["WatchOperation"] = [None, None, None]
    done = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["outcome"] == "COMPLETE"
    assert done.stderr == "hvctl: connection lost; operations/0b7c goes on; trying again\n"


def test_an_operation_that_cannot_be_followed_is_named(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    fake.reports = [running(growth_steps(0)), ended()]
    fake.errors["WatchOperation"] = [status(7, "not for you", [error_info("NOT_PERMITTED")])]
    done = hvctl("scale", "web-1", "--vcpus", "8", "-f", "json")
    assert done.returncode == 8
    document = json.loads(done.stdout)
    assert (document["name"], document["done"]) == ("operations/0b7c", False)
    assert document["error"]["message"] == "operations/0b7c was begun, but cannot be followed: not for you"


def test_ctrl_c_before_the_answer_says_how_to_repeat_the_request(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0))]
    fake.released.clear()
    fake.held_changes = True
    code, out, err = interrupted(fake, target, "reboot", "web-1")
    assert (code, out) == (130, "")
    assert f"--request-id {fake.requests('RebootDomain')[0].request_id}" in err


def test_where_there_is_no_socket_nothing_can_have_been_taken(hvctl: Hvctl) -> None:
    done = hvctl("setvcpus", "web-1", "4", HVCTL_TARGET="unix:///nonexistent/hvsvc.sock")
    assert done.returncode == 6
    assert "there is no socket" in done.stderr
    assert "--request-id" not in done.stderr
