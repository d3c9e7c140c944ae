"""docs/errors.md names every reason, once, under the status with which the program raises it."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from hvsvc import errors
from hvsvc.errors import Reason
from hvsvc.hvctl.exit_codes import BY_STATUS
from tests.documents import ROOT

DOCUMENT = ROOT / "docs" / "errors.md"
_ROW = re.compile(r"^\| `([A-Z_]+)` \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
_STATUS = re.compile(r"^Status `([A-Z_]+)`, (?:hvctl's )?exit code (\d+)\.", re.MULTILINE)
_SECTION = re.compile(r"^## ", re.MULTILINE)


def documented() -> dict[str, str | None]:
    """Each reason and its section's status; None in a section that is about no errors of calls."""
    found = {}
    for section in _SECTION.split(DOCUMENT.read_text("utf-8"))[1:]:
        status = _STATUS.search(section)
        for reason in _ROW.findall(section):
            found[reason] = status[1] if status else None
    return found


def _reason(node: ast.expr | None) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield from _reason(node.body)
        yield from _reason(node.orelse)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "Reason":
        yield node.attr


def _uses(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Pairs of a reason and the class it is used with."""
    for node in ast.walk(tree):
        kind, arguments = "", []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            kind, arguments = node.func.id, node.args[:1]
        elif isinstance(node, ast.Tuple) and len(node.elts) > 1 and isinstance(node.elts[0], ast.Name):
            kind, arguments = node.elts[0].id, node.elts[1:2]
        elif isinstance(node, ast.keyword) and node.arg == "refusal":
            kind, arguments = "FailedPreconditionError", [node.value]
        for argument in arguments:
            for reason in _reason(argument):
                yield reason, kind


def raised() -> dict[str, set[str]]:
    """Each reason and the statuses with which the source raises it, as far as one expression shows it."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in (ROOT / "hvsvc").rglob("*.py"):
        if "hvctl" not in path.parts and "v1" not in path.parts:
            for reason, kind in _uses(ast.parse(Path(path).read_text("utf-8"))):
                if kind.endswith("Error"):
                    found[reason].add(getattr(errors, kind).status)
    return found


def test_every_reason_has_one_row() -> None:
    rows = Counter(_ROW.findall(DOCUMENT.read_text("utf-8")))
    assert rows == Counter({reason.value: 1 for reason in Reason})


def test_no_row_is_malformed() -> None:
    rows = [line for line in DOCUMENT.read_text("utf-8").splitlines() if line.startswith("| `")]
    assert len(rows) == len(Reason)


def test_every_reason_is_used() -> None:
    source = "".join(
        path.read_text("utf-8")
        for path in (ROOT / "hvsvc").rglob("*.py")
        if path.name != "errors.py" and "hvctl" not in path.parts
    )
    assert [reason.name for reason in Reason if f"Reason.{reason.name}" not in source] == []


def test_reasons_stand_under_their_status() -> None:
    sections, statuses = documented(), raised()
    assert len(statuses) > len(Reason) // 2
    assert statuses["CEILING_LOST"] == {"FAILED_PRECONDITION"}
    wrong = {
        reason: (section, statuses[reason])
        for reason, section in sections.items()
        if section is not None and statuses[reason] and section not in statuses[reason]
    }
    assert wrong == {"HYPERVISOR_REFUSED": ("FAILED_PRECONDITION", {"UNIMPLEMENTED"})}, "its row says both"


def test_exit_codes_are_hvctls() -> None:
    shown = dict(_STATUS.findall(DOCUMENT.read_text("utf-8")))
    assert set(shown) == {kind.status for kind in errors.HvsvcError.__subclasses__()}
    assert {status: BY_STATUS[status] for status in shown} == {key: int(code) for key, code in shown.items()}
