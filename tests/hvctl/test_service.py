"""One command's connection: a call's error becomes a report and an exit code."""

from __future__ import annotations

import click
import pytest

from hvsvc.hvctl.service import connected
from hvsvc.hvctl.settings import Settings
from hvsvc.v1.domain_pb2 import GetDomainRequest
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import error_info, status


def context(settings: Settings) -> click.Context:
    return click.Context(click.Command("x"), obj=settings)


def test_a_call(target: str) -> None:
    with connected(context(Settings(target=target)), {}) as service:
        reply = service.domains.GetDomain(GetDomainRequest(name="web-1"))
    assert reply.nova.name == "web-1"


def test_an_error_ends_with_its_exit_code(
    target: str, fake: FakeHvsvc, capsys: pytest.CaptureFixture[str]
) -> None:
    fake.errors["GetDomain"] = [status(5, "no domain web-9", [error_info("DOMAIN_NOT_FOUND")])]
    with (
        pytest.raises(click.exceptions.Exit) as ended,
        connected(context(Settings(target=target)), {}) as service,
    ):
        service.domains.GetDomain(GetDomainRequest(name="web-9"))
    assert ended.value.exit_code == 3
    assert capsys.readouterr().err.splitlines()[0] == "hvctl: no domain web-9"


def test_the_channel_is_closed_afterwards(target: str) -> None:
    with connected(context(Settings(target=target)), {}) as service:
        stub = service.domains
    with pytest.raises(ValueError, match="closed channel"):
        stub.GetDomain(GetDomainRequest(name="web-1"))


def test_an_error_that_is_no_call_stays(target: str) -> None:
    with pytest.raises(KeyError), connected(context(Settings(target=target)), {}):
        raise KeyError("x")


def test_a_wrong_column_is_refused_before_a_connection() -> None:
    settings = Settings(target="not a target", columns=("x",))
    with pytest.raises(click.UsageError, match="no column 'x'"), connected(context(settings), {"a": None}):
        pass
