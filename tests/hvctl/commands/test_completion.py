"""Completion: the scripts, the words and the domains of the host."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import domain, off_domain
from tests.hvctl.conftest import Hvctl


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script(hvctl: Hvctl, shell: str) -> None:
    done = hvctl("completion", shell)
    assert done.returncode == 0
    assert f"_HVCTL_COMPLETE={shell}_complete" in done.stdout


def test_the_bash_script_is_bash(hvctl: Hvctl) -> None:
    bash = shutil.which("bash")
    assert bash
    script = hvctl("completion", "bash").stdout
    assert subprocess.run([bash, "-n"], input=script, text=True, check=False).returncode == 0


def complete(hvctl: Hvctl, words: str, index: int) -> list[str]:
    done = hvctl(_HVCTL_COMPLETE="bash_complete", COMP_WORDS=words, COMP_CWORD=str(index))
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_commands_and_options(hvctl: Hvctl) -> None:
    assert complete(hvctl, "hvctl set", 1) == ["setvcpus", "setmem"]
    assert complete(hvctl, "hvctl raise web-1 --max-", 3) == ["--max-vcpus", "--max-memory"]


def test_domains_of_the_host(hvctl: Hvctl, fake: FakeHvsvc) -> None:
    evil = off_domain()
    evil.libvirt_name = "web-\x1b[31m"
    fake.domains = [domain(), evil]
    assert complete(hvctl, "hvctl dominfo web", 2) == ["web-1"]
    assert complete(hvctl, "hvctl scale inst", 2) == ["instance-0000335c"]
    assert complete(hvctl, "hvctl watch web-1 6d0f", 3) == ["6d0f2f04-3f4b-4a55-9b7f-9a4c8f0d1a11"]


def test_the_target_before_the_command_is_asked(hvctl: Hvctl) -> None:
    assert complete(hvctl, "hvctl --target unix:///nonexistent dominfo web", 4) == []


def test_no_daemon_is_no_error(hvctl: Hvctl) -> None:
    done = hvctl(
        _HVCTL_COMPLETE="bash_complete",
        COMP_WORDS="hvctl --target unix:///nonexistent dominfo w",
        COMP_CWORD="4",
    )
    assert (done.stdout.strip(), done.stderr) == ("", "")
