"""`list`, `dominfo`, `vcpucount`, `host`: read the domains of the host, and the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from hvsvc.errors import Reason
from hvsvc.hvctl.columns import find
from hvsvc.hvctl.document import Document, document_of, shape_of
from hvsvc.hvctl.domain_name import domain_name, names_that_begin
from hvsvc.hvctl.domain_text import dominfo_lines, name_of, state_text, vcpucount_lines
from hvsvc.hvctl.drift_text import status_text
from hvsvc.hvctl.output import print_many, print_one
from hvsvc.hvctl.room_text import host_lines, room_lines, room_text
from hvsvc.hvctl.service import Service, connected
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.sizes import format_kib
from hvsvc.v1 import domain_pb2

DOMAIN_SHAPE: Final = shape_of(domain_pb2.Domain.DESCRIPTOR)
HOST_SHAPE: Final = shape_of(domain_pb2.Host.DESCRIPTOR)
VCPUS_SHAPE: Final = shape_of(domain_pb2.Vcpus.DESCRIPTOR)

_STATES: Final = {
    name.removeprefix("DOMAIN_STATE_").lower().replace("_", "-"): number
    for name, number in domain_pb2.DomainState.items()
    if number
}
_HEADINGS: Final = ("Id", "Server", "Name", "State", "vCPUs", "Memory", "Room to grow", "Note")
_PAGE_SIZE: Final = 100
#: conditions of a domain of which no definition could be read
_UNREAD: Final = {
    Reason.BROKEN_DEFINITION.value,
    Reason.CALL_TIMED_OUT.value,
    Reason.DOMAIN_BUSY.value,
}


@click.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(list(_STATES)),
    help="Only in this state; repeatable.",
)
@click.option("--server", metavar="ID|NAME", default="", help="Only the domain of this Nova server.")
@click.option("--guest", is_flag=True, help="Ask the guests too; slower.")
@global_options(root=False)
@click.pass_context
def list_command(ctx: click.Context, states: tuple[str, ...], server: str, guest: bool) -> None:
    """List the domains of the host, by name.

    With the room each has to grow without a reboot, and below it their sum beside what
    the host could really give.
    """
    request = domain_pb2.ListDomainsRequest(
        page_size=_PAGE_SIZE,
        states=[domain_pb2.DomainState.ValueType(_STATES[state]) for state in states],
        nova_server=server,
        view=domain_pb2.DOMAIN_VIEW_FULL if guest else domain_pb2.DOMAIN_VIEW_BASIC,
    )
    with connected(ctx, DOMAIN_SHAPE) as service:
        domains = sorted(map(document_of, _pages(service, request)), key=name_of)
        print_many(service.settings, domains, _HEADINGS, _row)
        if service.settings.output_format == "table" and not service.settings.columns:
            for line in room_lines(domains, document_of(_get_host(service))):
                click.echo(line)


@click.command("host")
@global_options(root=False)
@click.pass_context
def host_command(ctx: click.Context) -> None:
    """Report the host.

    What it has, what its running domains have of it, what they could grow to, and what
    it could really give.
    """
    with connected(ctx, HOST_SHAPE) as service:
        document = document_of(_get_host(service))
        print_one(service.settings, document, lambda: host_lines(document))


@click.command("dominfo")
@click.argument("domain", type=domain_name, shell_complete=names_that_begin)
@click.option("--no-guest", is_flag=True, help="Do not ask the guest agent.")
@global_options(root=False)
@click.pass_context
def dominfo_command(ctx: click.Context, domain: str, no_guest: bool) -> None:
    """Report one domain.

    What virsh dominfo prints, config and live apart, and the guest's view.
    """
    view = domain_pb2.DOMAIN_VIEW_BASIC if no_guest else domain_pb2.DOMAIN_VIEW_FULL
    with connected(ctx, DOMAIN_SHAPE) as service:
        reply = _get(service, domain, view)
        document = document_of(reply)
        print_one(service.settings, document, lambda: dominfo_lines(document))


@click.command("vcpucount")
@click.argument("domain", type=domain_name, shell_complete=names_that_begin)
@global_options(root=False)
@click.pass_context
def vcpucount_command(ctx: click.Context, domain: str) -> None:
    """Report the vCPU counts.

    As virsh vcpucount prints them, and the CPUs that the guest has and uses.
    """
    with connected(ctx, VCPUS_SHAPE) as service:
        document = document_of(_get(service, domain, domain_pb2.DOMAIN_VIEW_FULL).vcpus)
        print_one(service.settings, document, lambda: vcpucount_lines(document))


def _get_host(service: Service) -> domain_pb2.Host:
    return service.domains.GetHost(domain_pb2.GetHostRequest(), timeout=service.settings.call_timeout_s)


def _get(service: Service, name: str, view: domain_pb2.DomainView.ValueType) -> domain_pb2.Domain:
    request = domain_pb2.GetDomainRequest(name=name, view=view)
    return service.domains.GetDomain(request, timeout=service.settings.call_timeout_s)


def _pages(service: Service, request: domain_pb2.ListDomainsRequest) -> Iterator[domain_pb2.Domain]:
    while True:
        reply = service.domains.ListDomains(request, timeout=service.settings.call_timeout_s)
        yield from reply.domains
        if not reply.next_page_token:
            return
        request.page_token = reply.next_page_token


def _row(domain: Document) -> tuple[str, ...]:
    running = "id" in domain
    side = "live" if running else "config"
    vcpus, memory = find(domain, f"vcpus.current_{side}"), find(domain, f"memory.current_{side}_kib")
    return (
        str(domain.get("id", "-")),
        find(domain, "nova.name") or "-",
        domain.get("libvirt_name", "-"),
        state_text(domain),
        "-" if vcpus is None else str(vcpus),
        "-" if memory is None else format_kib(memory),
        room_text(domain),
        _note(domain),
    )


def _note(domain: Document) -> str:
    reasons = {condition.get("reason") for condition in domain.get("conditions", [])}
    if unread := reasons & _UNREAD:
        return f"not read: {', '.join(sorted(unread))}"
    drift = domain.get("drift", {})
    if drift.get("status", "IN_SYNC") not in {"IN_SYNC", "PENDING_REBOOT"}:
        return status_text(drift)
    if domain.get("pending_reboot"):
        return "pending reboot"
    return "next start differs" if Reason.CONFIG_LIVE_DIFFER.value in reasons else ""
