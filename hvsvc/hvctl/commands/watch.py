"""`watch`: the domains now, then each change."""

from __future__ import annotations

import time
from typing import Final

import click
import grpc

from hvsvc.hvctl.columns import find, select
from hvsvc.hvctl.document import Document, document_of, shape_of
from hvsvc.hvctl.domain_name import domain_name, names_that_begin
from hvsvc.hvctl.domain_text import label_of, state_text
from hvsvc.hvctl.output import print_row
from hvsvc.hvctl.service import Service, connected
from hvsvc.hvctl.settings import Settings, global_options
from hvsvc.hvctl.sizes import format_kib
from hvsvc.hvctl.terminal import safe
from hvsvc.hvctl.wait import FIRST_PAUSE_S, LONGEST_PAUSE_S
from hvsvc.v1 import domain_pb2

WATCH_SHAPE: Final = shape_of(domain_pb2.WatchDomainsResponse.DESCRIPTOR)
_AGAIN: Final = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)


@click.command("watch")
@click.argument("domains", type=domain_name, shell_complete=names_that_begin, nargs=-1)
@global_options(root=False)
@click.pass_context
def watch_command(ctx: click.Context, domains: tuple[str, ...]) -> None:
    """Show domains, then each change.

    Every domain of the host, or those named, until Ctrl-C. A lost connection is
    taken up again with a new snapshot. With -f json each line is one object.
    --timeout ends the watch after so many seconds.
    """
    with connected(ctx, WATCH_SHAPE) as service:
        _watch(service, domain_pb2.WatchDomainsRequest(names=domains))


def _watch(service: Service, request: domain_pb2.WatchDomainsRequest) -> None:
    settings = service.settings
    end_s = None if settings.timeout_s is None else time.monotonic() + settings.timeout_s
    pause_s, begun = FIRST_PAUSE_S, False
    while True:
        left_s = None if end_s is None else max(end_s - time.monotonic(), 0)
        try:
            for message in service.domains.WatchDomains(request, timeout=left_s):
                begun, pause_s = True, FIRST_PAUSE_S
                _print(settings, document_of(message))
        except grpc.RpcError as error:
            if end_s is not None and time.monotonic() >= end_s and begun:
                return
            if not begun or error.code() not in _AGAIN:
                raise
            click.echo("hvctl: the watch was interrupted; trying again", err=True)
        time.sleep(pause_s)
        pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


def _print(settings: Settings, change: Document) -> None:
    match settings.output_format:
        case "json":
            import json  # noqa: PLC0415

            click.echo(json.dumps(select(change, settings.columns)))
        case "yaml":
            import yaml  # noqa: PLC0415

            click.echo(
                yaml.safe_dump(select(change, settings.columns), sort_keys=False, explicit_start=True),
                nl=False,
            )
        case "value":
            print_row(change, settings.columns)
        case _ if settings.columns:
            click.echo(
                "  ".join(f"{column}={safe(find(change, column) or '')}" for column in settings.columns)
            )
        case _ if "domain" in change:
            click.echo(_line(change))


def _line(change: Document) -> str:
    domain = change["domain"]
    if change.get("type") == "REMOVED":
        return f"{'removed':<9} {label_of(domain)}  {safe(change.get('event', ''))}".rstrip()
    side = "live" if "id" in domain else "config"
    vcpus = [find(domain, f"vcpus.{which}_{side}") for which in ("current", "maximum")]
    memory = [find(domain, f"memory.{which}_{side}_kib") for which in ("current", "maximum")]
    sizes = [f"{vcpus[0]} of {vcpus[1]} vCPUs"] if None not in vcpus else []
    sizes += [f"{format_kib(memory[0])} of {format_kib(memory[1])}"] if None not in memory else []
    pending = ["pending reboot"] if domain.get("pending_reboot") else []
    cells = [label_of(domain), state_text(domain), *sizes, *pending, safe(change.get("event", ""))]
    return f"{safe(change.get('type', '').lower()):<9} {'  '.join(cell for cell in cells if cell)}"
