"""`headroom`: room to grow, stored now for the next planned reboot."""

from __future__ import annotations

import math
from typing import Any

import click

from hvsvc.hvctl.change import run_change
from hvsvc.hvctl.change_options import COUNT, change_options, domain_argument
from hvsvc.hvctl.number import Number
from hvsvc.hvctl.operation import OPERATION_SHAPE
from hvsvc.hvctl.service import connected
from hvsvc.hvctl.sizes import size_kib
from hvsvc.hvctl.topology import topology_policy
from hvsvc.v1 import domain_pb2, scaling_pb2


@click.command("headroom")
@domain_argument
@click.option("--vcpus", metavar="N", type=COUNT, help="Grow to so many vCPUs without another reboot.")
@click.option("--memory", "memory_kib", type=size_kib, metavar="SIZE", help="Grow to so much memory.")
@click.option(
    "--factor",
    metavar="F",
    type=Number(min=1, max=1024),
    help="Grow to F times the server's flavor, vCPUs and memory.",
)
@click.option(
    "--topology",
    type=topology_policy,
    metavar="sockets|cores|SxDxCxT",
    help="What grows with the maximum (default: sockets), or exact factors; SxDxLxCxT with clusters.",
)
@change_options
@click.pass_context
def headroom_command(
    ctx: click.Context,
    /,
    domain: str,
    vcpus: int | None,
    memory_kib: int | None,
    factor: float | None,
    no_wait: bool,
    **fields: Any,
) -> None:
    """Store room to grow.

    Stores a ceiling of at least so much, never a lower one than there is, and reboots
    nothing: it takes effect with the next soft reboot, such as hvctl reboot at a quiet
    time. It is remembered as asked for, so that hvctl drift tells when it is lost.
    """
    if factor is not None and (vcpus is not None or memory_kib is not None):
        raise click.UsageError("--factor sets both; leave out --vcpus and --memory")
    if factor is None and vcpus is None and memory_kib is None:
        raise click.UsageError("give --vcpus, --memory or --factor")
    present = _read(ctx, domain)
    if factor is not None:
        vcpus, memory_kib = _times_flavor(present, factor)
    request = scaling_pb2.RaiseCeilingRequest(
        name=domain,
        max_vcpus=_at_least(vcpus, present.vcpus, "maximum_config"),
        max_memory_kib=_at_least(memory_kib, present.memory, "maximum_config_kib"),
        reboot=scaling_pb2.REBOOT_MODE_NEVER,
        **fields,
    )
    # What was read is what the sizes were made from: a definition edited meanwhile is refused, not lowered.
    request.etag = request.etag or present.etag
    run_change(ctx, lambda service: service.scaling.RaiseCeiling, request, no_wait=no_wait)


def _read(ctx: click.Context, name: str) -> domain_pb2.Domain:
    with connected(ctx, OPERATION_SHAPE) as service:
        request = domain_pb2.GetDomainRequest(name=name, view=domain_pb2.DOMAIN_VIEW_BASIC)
        return service.domains.GetDomain(request, timeout=service.settings.call_timeout_s)


def _times_flavor(domain: domain_pb2.Domain, factor: float) -> tuple[int, int]:
    nova = domain.nova
    if not (nova.HasField("flavor_vcpus") and nova.HasField("flavor_memory_mib")):
        raise click.UsageError(
            "--factor is of the server's flavor, and the domain's metadata names none; give --vcpus and --memory"
        )
    return math.ceil(nova.flavor_vcpus * factor), math.ceil(nova.flavor_memory_mib * factor) << 10


def _at_least(asked: int | None, sizes: Any, maximum: str) -> int | None:
    if asked is None or not sizes.HasField(maximum):
        return asked
    present: int = getattr(sizes, maximum)
    return max(asked, present)
