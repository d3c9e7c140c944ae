"""The entry point `hvsvc`, with and without what the daemon needs."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

HVSVC = Path(sys.executable).with_name("hvsvc")
WITHOUT = "import sys; sys.modules['structlog'] = None; from hvsvc.start import main; main()"


def test_it_is_the_daemon() -> None:
    done = subprocess.run([HVSVC, "--version"], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, f"hvsvc {version('hvsvc')}\n"), done.stderr


def test_a_client_install_says_what_is_missing() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert done.stderr == (
        "hvsvc: structlog is missing: only the client is installed here; for the daemon install the wheel with "
        "its extra: pip install 'hvsvc-VERSION-py3-none-any.whl[daemon]'\n"
    )
