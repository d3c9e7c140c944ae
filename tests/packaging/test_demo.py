"""The demo, and that it prints what the README shows of it."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.documents import ROOT, Example, assert_fits, read_examples
from tests.guest_domains import wait_for

DEMO = "packaging/demo/run.sh"


@pytest.mark.guest
@pytest.mark.parametrize("example", read_examples(DEMO), ids=str)
def test_the_demo_shows_what_the_readme_says(example: Example) -> None:
    done = subprocess.run(
        [ROOT / DEMO],
        env={**os.environ, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert_fits(example.output, done.stdout)


@pytest.mark.guest
def test_a_demo_whose_reader_goes_away_leaves_nothing_behind() -> None:
    """Seen by an operator: `run.sh | head` left a running guest and its folder behind."""
    with subprocess.Popen(
        [ROOT / DEMO], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as demo:
        assert demo.stdout is not None
        for line in demo.stdout:
            if "hvctl vcpucount web-1" in line:
                break
        folders: set[Path] = set()

        def found() -> bool:
            folders.update(folders_named_in(demo.pid))
            return bool(folders)

        wait_for(found, "process of the demo", timeout_s=30)
        demo.stdout.close()
        assert demo.wait(120) != 0
    (folder,) = folders
    assert not folder.exists()
    assert not [pid for pid in running_pids() if str(folder) in words_of(pid)]


def running_pids() -> list[int]:
    """Of every process here."""
    return [int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()]


def words_of(pid: int) -> str:
    """Command line and environment of a process; empty where it is gone."""
    with contextlib.suppress(OSError):
        return "".join(
            Path(f"/proc/{pid}/{each}").read_text("utf-8", "replace") for each in ("cmdline", "environ")
        )
    return ""


def in_session(pid: int, session: int) -> bool:
    """Whether the process belongs to the session that a process leads."""
    with contextlib.suppress(ProcessLookupError):
        return os.getsid(pid) == session
    return False


def folders_named_in(session: int) -> set[Path]:
    """Demo folders, by what the processes of a session were started with."""
    started = "".join(words_of(pid) for pid in running_pids() if in_session(pid, session))
    return set(map(Path, re.findall(r"/tmp/hvsvc-demo\.(?!XXXXXX)\w+", started)))
