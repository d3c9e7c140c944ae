"""The demo, and that it prints what the README shows of it."""

from __future__ import annotations

import os
import subprocess

import pytest

from tests.documents import ROOT, Example, assert_fits, read_examples

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
