"""No block of the documents escapes the tests, and no link leads nowhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import DOCUMENTS, README, ROOT, Block, read_blocks, read_examples

#: kind of block -> the test that runs every block of it
RUN_BY = {
    "console": "test_console.py, ../hvctl/test_manual.py, ../packaging/test_demo.py, ../lab/test_readme.py",
    "sh": "test_shell.py",
    "toml": "test_settings.py",
    "yaml": "test_settings.py",
    "python": "../end_to_end/test_api_document.py",
    "json": "../lab/test_credentials.py",
    "policy": "../lab/test_credentials.py",
}
LINKED = (*DOCUMENTS, ROOT / "CHANGELOG.md", ROOT / "ARCHITECTURE.md")


@pytest.mark.parametrize("block", read_blocks(), ids=str)
def test_each_block_is_of_a_kind_that_is_run(block: Block) -> None:
    assert block.kind in RUN_BY
    assert block.text.strip()


@pytest.mark.parametrize("kind", RUN_BY)
def test_what_runs_a_kind_is_there(kind: str) -> None:
    for name in RUN_BY[kind].split(", "):
        path = Path(__file__).parent / name
        assert "read_blocks" in path.read_text() or "read_examples" in path.read_text(), name


def test_each_command_is_of_a_program_that_is_run() -> None:
    assert {example.command.split()[0] for example in read_examples()} == {
        "hvctl",
        "make",
        "packaging/demo/run.sh",
    }


def test_output_is_shown_only_where_it_is_compared() -> None:
    for example in read_examples("make"):
        assert example.output == (), f"{example}: nothing compares its output"


def anchors(path: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", path.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.name)
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"\s*\n\s*", " ", path.read_text("utf-8"))):
        if target.startswith("https://"):
            continue
        name, _, anchor = target.partition("#")
        linked = (path.parent / name) if name else path
        assert linked.exists(), target
        if anchor:
            assert anchor in anchors(linked), target


def test_the_readme_links_every_document() -> None:
    text = README.read_text("utf-8")
    for path in LINKED[1:]:
        assert f"]({path.relative_to(ROOT)})" in text, path
