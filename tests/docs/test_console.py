"""The make targets that the documents name; hvctl's commands run in tests/hvctl/test_manual.py."""

from __future__ import annotations

import subprocess

import pytest

from tests.documents import ROOT, Example, read_examples


@pytest.mark.parametrize("example", read_examples("make"), ids=str)
def test_the_target_exists(example: Example) -> None:
    program, *targets = example.command.split()
    done = subprocess.run(
        [program, "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert targets
