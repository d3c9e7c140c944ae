"""The shape of the code that no linter looks at."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parent.parent
MOST_LINES = 300


def test_no_module_has_more_than_one_job() -> None:
    lengths = {
        str(path.relative_to(ROOT)): len(path.read_text().splitlines())
        for path in (ROOT / "hvsvc").rglob("*.py")
        if "_pb2" not in path.name
    }
    assert len(lengths) > 100
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}
