"""The face of the daemon, for tests of one of its services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fakes.face import Face, unix_face


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Face]:
    """Serves on a unix socket; its use cases are fakes."""
    async with unix_face(tmp_path) as opened:
        yield opened
