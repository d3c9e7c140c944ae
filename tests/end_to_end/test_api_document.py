"""The programs in docs/api.md, run as they stand against the daemon and a real guest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.documents import Block, read_blocks
from tests.guest_domains import GuestDomains
from tests.hvsvc_process import HvsvcProcess

pytestmark = pytest.mark.guest


@pytest.mark.parametrize("block", read_blocks("python"), ids=str)
def test_the_program_grows_a_domain_and_explains_a_refusal(
    hvsvc: HvsvcProcess, domains: GuestDomains, tmp_path: Path, block: Block
) -> None:
    domain = domains.boot(name="by-api", vcpus=2, max_vcpus=4)
    program = tmp_path / "example.py"
    program.write_text(block.text)

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, program, *words], capture_output=True, text=True, timeout=120, check=False
        )

    grown = run(hvsvc.target, "by-api")
    assert grown.returncode == 0, grown
    assert grown.stdout.splitlines() == [
        f"domains/{domain.UUIDString()}: 3 steps, reboot: False",
        "OUTCOME_COMPLETE, CPUs online in the guest: 4",
    ]
    again = run(hvsvc.target, "by-api")
    assert again.returncode == 0, again
    assert "0 steps" in again.stdout

    domains.boot(name="no-room", vcpus=2, max_vcpus=2)
    refused = run(hvsvc.target, "no-room")
    assert refused.returncode == 1
    assert "reason: REBOOT_REQUIRED" in refused.stdout
    assert "refused: nothing was changed" in refused.stderr

    unreachable = run(f"unix:{tmp_path}/none", "by-api")
    assert unreachable.returncode != 0
