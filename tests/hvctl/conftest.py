"""hvctl as a process, against a fake service on a unix socket."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fakes.hvsvc_server import FakeHvsvc, FakeServer
from tests.fakes.service_messages import domain, off_domain

Hvctl = Callable[..., "subprocess.CompletedProcess[str]"]

HVCTL = (sys.executable, "-m", "hvsvc.hvctl")


def clean_env(**more: str) -> dict[str, str]:
    """The environment without what hvctl or Rich would read from it."""
    ours = ("HVCTL_", "_HVCTL", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "LC_ALL")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    return kept | {"PYTHONIOENCODING": "utf-8"} | more


@pytest.fixture
def fake() -> FakeHvsvc:
    """What the service answers; a test changes it before it runs hvctl."""
    return FakeHvsvc(domains=[domain(), off_domain()])


@pytest.fixture
def target(fake: FakeHvsvc) -> Iterator[str]:
    """The fake service's target."""
    with tempfile.TemporaryDirectory(prefix="hvctl-", dir="/tmp") as directory:
        path = Path(directory) / "s"
        with FakeServer(fake, f"unix:{path}"):
            yield f"unix://{path}"


@pytest.fixture
def hvctl(target: str) -> Hvctl:
    """Run hvctl against the fake service: `hvctl("dominfo", "web-1")`."""

    def run(*args: str, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HVCTL, *args],
            env=clean_env(**{"HVCTL_TARGET": target, **env}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
            check=False,
        )

    return run
