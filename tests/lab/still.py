"""Holds nova-compute still for a moment, where its periodic work would undo what a test has just done.

Every 20 s it stops for good what it finds off behind its back, and every minute it writes its host's inventory anew.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SCRIPT = Path(__file__).parent / "service.sh"


@contextmanager
def nova_compute_still() -> Iterator[None]:
    """What it is asked meanwhile, and libvirt's events, it finds when it goes on; after 30 s libvirtd lets it go."""
    subprocess.run([_SCRIPT, "nova-compute", "freeze"], timeout=60, check=True)
    try:
        yield
    finally:
        subprocess.run([_SCRIPT, "nova-compute", "thaw"], timeout=60, check=True)
