"""The documents for users, their fenced blocks, and how shown output compares with real output."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
#: in the order in which an operator meets them
DOCUMENTS = (README, *sorted((ROOT / "docs").glob("*.md")))
#: stands for any lines that are not shown
ELLIPSIS = "…"

_FENCE = re.compile(r"\s*(```+|~~~+)\s*(.*)")

#: what differs from run to run, and what is put in its place
_MASKS = (
    (r"\x1b\[[0-9;]*m", ""),
    (r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "UUID"),
    (r"\binstance-[0-9a-f]{8}\b", "instance-N"),
    (r"\b\d+\.\d s\b", "N s"),
    (r"\bdone in \d+ s\b", "done in N s"),
    (r"\bdomain id \d+ to \d+\b", "domain id N to N"),
    (r"\b\d+ ?(KiB|kB)\b", r"N \1"),
    (r"^\d+(?=\s+web-1\b)", "N"),
    (r"\s+", " "),
)


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    document: Path
    line: int
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.document.name}:{self.line}"


@dataclass(frozen=True)
class Example:
    """A command of a console block, and the output shown below it; none where none is shown."""

    document: Path
    command: str
    output: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.document.name}: {self.command}"


def read_blocks(kind: str | None = None) -> list[Block]:
    """The blocks of all documents, or those of one kind; AssertionError for a fence that is not closed."""
    return [block for path in DOCUMENTS for block in _read(path) if kind is None or block.kind == kind]


def _read(path: Path) -> Iterator[Block]:
    lines = enumerate(path.read_text("utf-8").splitlines(), 1)
    for number, line in lines:
        opened = _FENCE.fullmatch(line)
        if opened is None:
            continue
        text = []
        for _, inner in lines:
            if inner.strip() == opened[1]:
                break
            text.append(inner)
        else:
            raise AssertionError(f"{path.name}:{number}: the block is not closed")
        yield Block(path, number, opened[2], "\n".join(text) + "\n")


def read_examples(program: str | None = None) -> list[Example]:
    """The commands of the console blocks, or those of one program."""
    found = []
    for block in read_blocks("console"):
        # a script may show commands of its own
        only = 1 if block.text.startswith("$ packaging/") else 0
        first, *commands = re.split(r"^\$ ", block.text, maxsplit=only, flags=re.MULTILINE)
        assert first == "", f"{block} does not begin with a command"
        for command in commands:
            line, *output = command.rstrip("\n").split("\n")
            found.append(Example(block.document, line, tuple(output)))
    return [example for example in found if program is None or example.command.split()[0] == program]


def assert_fits(shown: Sequence[str], real: str) -> None:
    """Asserts that real output is the one shown, up to what differs from run to run; … stands for any lines."""
    lines = [masked for line in real.splitlines() if (masked := _mask(line))]
    at = 0
    skipping = False
    for line in shown:
        if line == ELLIPSIS:
            skipping = True
            continue
        wanted = _mask(line)
        if not wanted:
            continue
        if skipping:
            while at < len(lines) and lines[at] != wanted:
                at += 1
        assert at < len(lines), f"not in the output: {line}\n{real}"
        assert lines[at] == wanted, f"shown: {line}\n{real}"
        at, skipping = at + 1, False
    assert skipping or at == len(lines), f"more output than shown, from {lines[at]}"


def _mask(line: str) -> str:
    for pattern, word in _MASKS:
        line = re.sub(pattern, word, line)
    return line.strip()
