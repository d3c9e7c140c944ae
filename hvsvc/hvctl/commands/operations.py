"""`operations`: list, show, watch, cancel and delete long-running operations."""

from __future__ import annotations

from typing import Any, Final

import click
from google.longrunning import operations_pb2

from hvsvc.hvctl.change import follow, print_operation
from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.domain_name import domain_name, names_that_begin
from hvsvc.hvctl.operation import OPERATION_SHAPE, full_name, operation_document
from hvsvc.hvctl.output import print_many, print_one
from hvsvc.hvctl.service import Service, connected
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.terminal import safe

_HEADINGS: Final = ("Operation", "Server", "Domain", "Method", "Began", "Status")
_PAGE_SIZE: Final = 100

_name_argument: Final = click.argument("name", metavar="NAME")


@click.group("operations", invoke_without_command=True)
@global_options(root=False)
@click.pass_context
def operations_command(ctx: click.Context) -> None:
    """List and follow operations.

    NAME is operations/ID or the ID alone. Without a command: list.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_operations)


@operations_command.command("list")
@click.option("--running", is_flag=True, help="Only those that are not done.")
@click.option(
    "--domain", type=domain_name, shell_complete=names_that_begin, help="Only those of this domain."
)
@click.option("--limit", type=click.IntRange(1), default=100, show_default=True, help="At most so many.")
@global_options(root=False)
@click.pass_context
def list_operations(ctx: click.Context, running: bool, domain: str | None, limit: int) -> None:
    """List operations, newest first."""
    narrowed = _filter(running=running, domain=domain)
    with connected(ctx, OPERATION_SHAPE) as service:
        found: list[Document] = []
        token = ""
        while len(found) < limit:
            request = operations_pb2.ListOperationsRequest(
                name="operations", filter=narrowed, page_size=_PAGE_SIZE, page_token=token
            )
            reply = service.operations.ListOperations(request, timeout=service.settings.call_timeout_s)
            found += map(operation_document, reply.operations)
            token = reply.next_page_token
            if not token:
                break
        print_many(service.settings, found[:limit], _HEADINGS, _row)


@operations_command.command("show")
@_name_argument
@global_options(root=False)
@click.pass_context
def show_operation(ctx: click.Context, name: str) -> None:
    """Show one operation as it is now; exit code 0 whatever it ended with."""
    with connected(ctx, OPERATION_SHAPE) as service:
        print_operation(service, _get(service, name))


@operations_command.command("watch")
@_name_argument
@global_options(root=False)
@click.pass_context
def watch_operation(ctx: click.Context, name: str) -> None:
    """Wait for an operation and end as the command that began it would have."""
    with connected(ctx, OPERATION_SHAPE) as service:
        follow(ctx, service, _get(service, name))


@operations_command.command("cancel")
@_name_argument
@global_options(root=False)
@click.pass_context
def cancel_operation(ctx: click.Context, name: str) -> None:
    """Ask an operation to end before its next step; what it has done stays."""
    with connected(ctx, OPERATION_SHAPE) as service:
        if (before := _get(service, name)).done:
            print_operation(service, before)
            click.echo(f"hvctl: {safe(before.name)} had ended already; nothing was cancelled", err=True)
            return
        request = operations_pb2.CancelOperationRequest(name=full_name(name))
        service.operations.CancelOperation(request, timeout=service.settings.call_timeout_s)
        print_operation(service, _get(service, name))


@operations_command.command("delete")
@_name_argument
@global_options(root=False)
@click.pass_context
def delete_operation(ctx: click.Context, name: str) -> None:
    """Forget an operation that is done."""
    with connected(ctx, {"name": None, "deleted": None}) as service:
        request = operations_pb2.DeleteOperationRequest(name=full_name(name))
        service.operations.DeleteOperation(request, timeout=service.settings.call_timeout_s)
        document = {"name": request.name, "deleted": True}
        print_one(service.settings, document, lambda: [f"{safe(request.name)} is deleted"])


def _get(service: Service, name: str) -> Any:
    request = operations_pb2.GetOperationRequest(name=full_name(name))
    return service.operations.GetOperation(request, timeout=service.settings.call_timeout_s)


def _filter(*, running: bool, domain: str | None) -> str:
    if domain and not set(domain).isdisjoint('"\\'):
        raise click.UsageError(f"--domain {domain!r}: name a domain with a quote or backslash by its uuid")
    terms = [f'domain = "{domain}"'] if domain else []
    terms += ["done = false"] if running else []
    return " AND ".join(terms)


def _row(operation: Document) -> tuple[str, ...]:
    if not operation["done"]:
        status = "cancelling" if operation.get("cancel_requested") else "running"
    else:
        status = (
            operation.get("outcome")
            or find(operation, "error.reason")
            or find(operation, "error.code")
            or "unknown"
        )
    return (
        operation["name"],
        operation.get("server_name") or "-",
        operation.get("libvirt_name") or operation.get("domain", "-"),
        operation.get("method", "-"),
        _second(operation.get("create_time", "-")),
        status,
    )


def _second(time: str) -> str:
    """A time of the contract without what is below a second."""
    return f"{time.partition('.')[0]}Z" if "." in time else time
