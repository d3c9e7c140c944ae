"""The exit code table: complete, and each number as documented."""

from __future__ import annotations

import grpc
import pytest

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.main import cli
from hvsvc.v1 import scaling_pb2


@pytest.mark.parametrize("code", grpc.StatusCode)
def test_every_grpc_code_has_an_exit_code(code: grpc.StatusCode) -> None:
    assert code.name in exit_codes.BY_STATUS


@pytest.mark.parametrize("name", scaling_pb2.Outcome.keys())
def test_every_outcome_has_an_exit_code(name: str) -> None:
    word = name.removeprefix("OUTCOME_")
    assert word == "UNSPECIFIED" or word in exit_codes.BY_OUTCOME


@pytest.mark.parametrize(
    ("code", "number"),
    [
        ("OK", 0),
        ("INTERNAL", 1),
        ("UNKNOWN", 1),
        ("DATA_LOSS", 1),
        ("INVALID_ARGUMENT", 2),
        ("OUT_OF_RANGE", 2),
        ("NOT_FOUND", 3),
        ("FAILED_PRECONDITION", 4),
        ("UNIMPLEMENTED", 4),
        ("ABORTED", 5),
        ("ALREADY_EXISTS", 5),
        ("UNAVAILABLE", 6),
        ("DEADLINE_EXCEEDED", 6),
        ("RESOURCE_EXHAUSTED", 6),
        ("CANCELLED", 7),
        ("PERMISSION_DENIED", 8),
        ("UNAUTHENTICATED", 8),
        ("A_CODE_OF_TOMORROW", 1),
    ],
)
def test_status(code: str, number: int) -> None:
    assert exit_codes.for_status(code) == number


@pytest.mark.parametrize(
    ("outcome", "reboot_asked", "number"),
    [
        ("COMPLETE", False, 0),
        ("COMPLETE", True, 0),
        ("VALIDATED", False, 0),
        ("PENDING_REBOOT", False, 0),
        ("PENDING_REBOOT", True, 7),
        ("PARTIAL", False, 7),
        ("UNCONFIRMED", False, 7),
        (None, False, 7),
        ("9", False, 7),
    ],
)
def test_outcome(outcome: str | None, reboot_asked: bool, number: int) -> None:
    assert exit_codes.for_outcome(outcome, reboot_asked=reboot_asked) == number


def test_help_names_every_exit_code() -> None:
    text = cli.help or ""
    listed = text[text.index("Exit codes:") :]
    for number in {*exit_codes.BY_STATUS.values(), *exit_codes.BY_OUTCOME.values(), exit_codes.INTERRUPTED}:
        assert f"{number} " in listed, f"the help names no exit code {number}"
