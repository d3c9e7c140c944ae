"""`raise`, `setvcpus`, `setmem`, `scale`, `reboot`: change a domain."""

from __future__ import annotations

from typing import Any

import click

from hvsvc.hvctl.change import run_change
from hvsvc.hvctl.change_options import (
    COUNT,
    affect_of,
    affect_options,
    change_options,
    domain_argument,
    max_options,
    online_option,
    reboot_option,
    refuse_nothing_asked,
    size_options,
    via_option,
    with_options,
)
from hvsvc.hvctl.sizes import size_kib
from hvsvc.v1 import scaling_pb2


@click.command("raise")
@with_options(domain_argument, *max_options)
@click.option("--boot-vcpus", metavar="N", type=COUNT, help="Also set the vCPUs of the next start.")
@click.option(
    "--boot-memory",
    "boot_memory_kib",
    metavar="SIZE",
    type=size_kib,
    help="Also set the memory of the next start.",
)
@reboot_option
@change_options
@click.pass_context
def raise_command(ctx: click.Context, /, domain: str, no_wait: bool, **fields: Any) -> None:
    """Raise the ceiling.

    The ceiling is the maxima the running domain can grow to. Without
    --reboot soft it stays pending until the next reboot.
    """
    refuse_nothing_asked(fields, sizes=False)
    request = scaling_pb2.RaiseCeilingRequest(name=domain, **fields)
    run_change(ctx, lambda service: service.scaling.RaiseCeiling, request, no_wait=no_wait)


@click.command("setvcpus")
@domain_argument
@click.argument("vcpus", metavar="N", type=COUNT)
@with_options(*affect_options, online_option)
@change_options
@click.pass_context
def setvcpus_command(
    ctx: click.Context, /, domain: str, live: bool, config: bool, no_wait: bool, **fields: Any
) -> None:
    """Set the current vCPUs.

    Within the ceiling; brings new ones online in the guest; never reboots.
    """
    request = scaling_pb2.SetVcpusRequest(name=domain, affect=affect_of(live=live, config=config), **fields)
    run_change(ctx, lambda service: service.scaling.SetVcpus, request, no_wait=no_wait)


@click.command("setmem")
@domain_argument
@click.argument("memory_kib", metavar="SIZE", type=size_kib)
@with_options(*affect_options)
@change_options
@click.pass_context
def setmem_command(
    ctx: click.Context, /, domain: str, live: bool, config: bool, no_wait: bool, **fields: Any
) -> None:
    """Set the current memory.

    Within the ceiling; waits for the guest's balloon; never reboots.
    """
    request = scaling_pb2.SetMemoryRequest(name=domain, affect=affect_of(live=live, config=config), **fields)
    run_change(ctx, lambda service: service.scaling.SetMemory, request, no_wait=no_wait)


@click.command("scale")
@with_options(domain_argument, *size_options, *max_options, reboot_option, online_option, via_option)
@change_options
@click.pass_context
def scale_command(ctx: click.Context, /, domain: str, no_wait: bool, via: str, **fields: Any) -> None:
    """Bring a running domain to a size.

    Raises its ceiling where that is needed. Where that takes a reboot, --reboot soft
    must allow it; else nothing is changed.

    With --via resize the server is resized through Nova instead, with the credential of
    --cloud, to the flavor of just this size; it restarts, to which --reboot soft must
    consent. What came of it is looked at before it is confirmed; where it is not as the
    flavor says, it is reverted.
    """
    refuse_nothing_asked(fields, topology=False)
    if via == "resize":
        from hvsvc.hvctl.resize_command import run_resize  # noqa: PLC0415  with openstacksdk behind it

        run_resize(ctx, domain, fields)
        return
    request = scaling_pb2.ScaleDomainRequest(name=domain, **fields)
    run_change(ctx, lambda service: service.scaling.ScaleDomain, request, no_wait=no_wait)


@click.command("reboot")
@domain_argument
@change_options
@click.pass_context
def reboot_command(ctx: click.Context, /, domain: str, no_wait: bool, **fields: Any) -> None:
    """Reboot for a pending ceiling.

    Through Nova (soft only) where the domain is Nova's, else by shutting it down and
    starting it. Afterwards the ceiling is read back, and the domain is grown to the size
    it was last asked to have, as far as the ceiling allows.
    """
    request = scaling_pb2.RebootDomainRequest(name=domain, **fields)
    run_change(ctx, lambda service: service.scaling.RebootDomain, request, no_wait=no_wait)
