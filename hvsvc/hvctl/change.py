"""Runs a change: asks for it, follows it to its end, prints what it ended with."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

import click
import grpc
from google.longrunning.operations_pb2 import Operation

from hvsvc.errors import Reason
from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.change_text import operation_lines
from hvsvc.hvctl.channel import socket_trouble
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.failure import Failure, failure_of_call
from hvsvc.hvctl.interrupt import if_interrupted
from hvsvc.hvctl.operation import OPERATION_SHAPE, exit_code_of, operation_document, operation_failure
from hvsvc.hvctl.output import print_one
from hvsvc.hvctl.report import explain, report
from hvsvc.hvctl.service import Service, connected
from hvsvc.hvctl.terminal import safe
from hvsvc.hvctl.wait import WaitTimeoutError, wait_for
from hvsvc.v1 import scaling_pb2

Method: TypeAlias = Callable[[Service], Callable[..., Operation]]

#: The service may have taken the request although no answer came.
_NO_ANSWER = {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "UNKNOWN"}


def run_change(ctx: click.Context, method: Method, request: Any, *, no_wait: bool) -> None:
    """Ask for the change and follow it; ends hvctl with the exit code of what came of it."""
    reboot_asked = isinstance(request, scaling_pb2.RebootDomainRequest) or (
        getattr(request, "reboot", 0) == scaling_pb2.REBOOT_MODE_SOFT
    )
    with connected(ctx, OPERATION_SHAPE) as service:
        operation = _begin(ctx, service, method, request)
        if no_wait and not operation.done:
            print_operation(service, operation)
            click.echo(f"hvctl: watch it with: {_watch_words(service, operation)}", err=True)
            return
        follow(ctx, service, operation, reboot_asked=reboot_asked)


def follow(ctx: click.Context, service: Service, operation: Operation, *, reboot_asked: bool = False) -> None:
    """Wait for the operation, print it, and end hvctl with its exit code."""
    settings = service.settings
    last = operation

    def seen(report_now: Operation) -> None:
        nonlocal last
        last = report_now

    on_terminal = sys.stdout.isatty() and sys.stderr.isatty() and not operation.done
    try:
        with if_interrupted(lambda: _goes_on_lines(service, operation)):
            last = (_wait_shown if on_terminal else _wait_silently)(service, operation, seen)
    except WaitTimeoutError:
        message = f"{last.name} still runs after {settings.wait_timeout_s:g} s; it goes on"
        failure = Failure("DEADLINE_EXCEEDED", message, Reason.CALL_TIMED_OUT.value)
        _print_unfinished(ctx, service, last, failure)
    except grpc.RpcError as error:
        failure = failure_of_call(error, settings.target)
        message = f"{last.name} was begun, but cannot be followed: {failure.message}"
        _print_unfinished(ctx, service, last, replace(failure, message=message))
    document = print_operation(service, last, with_steps=not on_terminal, with_error=False)
    if failure_at_end := operation_failure(last):
        explain(settings, failure_at_end)
    ctx.exit(exit_code_of(document, reboot_asked=reboot_asked))


def print_operation(
    service: Service,
    operation: Operation,
    *,
    with_steps: bool = True,
    with_error: bool = True,
    failure: Failure | None = None,
) -> Document:
    """Print it, with `failure` as its error where following it failed; the document.

    `with_error` is off where the error is told on stderr: a table then names its reason alone.
    """
    document = operation_document(operation)
    if failure:
        document["error"] = failure.document
    print_one(
        service.settings,
        document,
        lambda: operation_lines(document, with_steps=with_steps, with_error=with_error),
    )
    return document


def _begin(ctx: click.Context, service: Service, method: Method, request: Any) -> Operation:
    settings = service.settings
    again = f"it may have been taken; to repeat it safely, add --request-id {request.request_id}"
    nobody_there = socket_trouble(settings.target) is not None
    try:
        with if_interrupted(lambda: [f"hvctl: there is no answer yet to the request; {again}"]):
            return method(service)(request, timeout=settings.call_timeout_s)
    except grpc.RpcError as error:
        failure = failure_of_call(error, settings.target)
        unanswered = not failure.reason and failure.code in _NO_ANSWER and not nobody_there
        report(settings, failure)
        if unanswered:
            click.echo(f"  {again}", err=True)
        ctx.exit(exit_codes.for_status(failure.code))


def _wait_silently(service: Service, operation: Operation, seen: Callable[[Operation], None]) -> Operation:
    said = False

    def lost() -> None:
        nonlocal said
        if not said:
            click.echo(f"hvctl: connection lost; {safe(operation.name)} goes on; trying again", err=True)
        said = True

    return wait_for(service.progress, operation, service.settings.wait_timeout_s, seen, lost)


def _wait_shown(service: Service, operation: Operation, seen: Callable[[Operation], None]) -> Operation:
    from hvsvc.hvctl.progress import StepDisplay  # noqa: PLC0415  Rich, for a terminal only

    with StepDisplay() as display:

        def both(report_now: Operation) -> None:
            seen(report_now)
            display.seen(report_now)

        return wait_for(service.progress, operation, service.settings.wait_timeout_s, both, display.lost)


def _print_unfinished(ctx: click.Context, service: Service, operation: Operation, failure: Failure) -> None:
    print_operation(service, operation, with_error=False, failure=failure)
    explain(service.settings, failure, next_step=_watch_words(service, operation))
    ctx.exit(exit_codes.for_status(failure.code))


def _watch_words(service: Service, operation: Operation) -> str:
    return f"hvctl {service.settings.target_words}operations watch {safe(operation.name)}"


def _goes_on_lines(service: Service, operation: Operation) -> list[str]:
    return [
        f"hvctl: {safe(operation.name)} goes on",
        f"  watch it:  {_watch_words(service, operation)}",
        f"  cancel it: hvctl {service.settings.target_words}operations cancel {safe(operation.name)}",
    ]
