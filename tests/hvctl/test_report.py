"""Failures for people and for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hvsvc.hvctl.failure import Failure
from hvsvc.hvctl.report import report
from hvsvc.hvctl.settings import Settings

FAILURE = Failure(
    "INVALID_ARGUMENT",
    "web names \x1b[2J2 domains",
    reason="AMBIGUOUS_NAME",
    metadata={"candidates": "domains/a, domains/b\r"},
    violations=[{"description": "web names \x1b[2J2 domains"}, {"description": "another one"}],
    field_violations=[{"field": "name", "description": "not unique"}],
    retry_delay="5s",
)


def test_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    report(Settings(), FAILURE)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "hvctl: web names \\x1b[2J2 domains",
        "  reason: AMBIGUOUS_NAME (INVALID_ARGUMENT)",
        "  field: name: not unique",
        "  also: another one",
        "  candidate: domains/a",
        "  candidate: domains/b",
        "  retry after: 5s",
        "  next: name the domain by its uuid; hvctl list -c uuid -c nova.name shows them",
    ]


def test_for_programs_the_same_on_stdout_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    report(Settings(output_format="json"), FAILURE)
    out, err = capsys.readouterr()
    assert json.loads(out)["error"]["metadata"] == {"candidates": "domains/a, domains/b\r"}
    assert "\x1b" not in out
    assert err.startswith("hvctl: web names")


def test_values_print_nothing_on_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    report(Settings(output_format="value"), FAILURE)
    assert capsys.readouterr().out == ""


def test_an_error_without_a_reason_shows_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    report(Settings(target="127.0.0.1:9443", insecure=True), Failure("UNAVAILABLE", "no route"))
    assert capsys.readouterr().err.splitlines() == [
        "hvctl: no route",
        "  code: UNAVAILABLE",
        (
            "  next: check --target (127.0.0.1:9443); the port may want TLS: give --tls-ca, --tls-cert and --tls-key "
            "instead of --insecure; on that host: systemctl status hvsvc"
        ),
    ]


def test_over_tls_no_connection_may_be_a_certificate_that_does_not_fit(
    capsys: pytest.CaptureFixture[str],
) -> None:
    report(Settings(target="host-1:9443", tls_cert=Path("client.pem")), Failure("UNAVAILABLE", "no route"))
    assert (
        capsys.readouterr().err.splitlines()[-1].startswith("  next: check --target (host-1:9443), --tls-ca ")
    )


def test_what_the_message_says_is_not_said_again(capsys: pytest.CaptureFixture[str]) -> None:
    message = "web-1 names 2 domains: domains/a (x), domains/b (y)"
    failure = Failure(
        "INVALID_ARGUMENT",
        message,
        reason="INVALID_VALUE",
        metadata={"candidates": "domains/a (x), domains/b (y)"},
        violations=[{"description": message}],
        field_violations=[{"field": "name", "description": message}],
    )
    report(Settings(), failure)
    assert capsys.readouterr().err.splitlines() == [
        f"hvctl: {message}",
        "  reason: INVALID_VALUE (INVALID_ARGUMENT)",
        "  field: name",
    ]
