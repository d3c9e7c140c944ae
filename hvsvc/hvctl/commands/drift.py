"""`drift`, `forget`: what was asked for, compared with what is there."""

from __future__ import annotations

from typing import Final

import click

from hvsvc.hvctl.document import document_of, shape_of
from hvsvc.hvctl.domain_name import domain_name, names_that_begin
from hvsvc.hvctl.drift_text import HEADINGS, desired_text, drift_lines, drift_row, nothing_text
from hvsvc.hvctl.output import print_many, print_one
from hvsvc.hvctl.service import connected
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.terminal import safe
from hvsvc.v1 import desired_pb2, drift_pb2

DRIFT_SHAPE: Final = shape_of(desired_pb2.Drift.DESCRIPTOR)
FORGOTTEN_SHAPE: Final = shape_of(drift_pb2.ForgetDesiredStateResponse.DESCRIPTOR)

_POLICIES: Final = {
    "report": desired_pb2.REAPPLY_POLICY_REPORT,
    "config": desired_pb2.REAPPLY_POLICY_CONFIG,
    "live": desired_pb2.REAPPLY_POLICY_LIVE,
    "default": desired_pb2.REAPPLY_POLICY_UNSPECIFIED,
}


@click.command("drift")
@click.argument("domain", type=domain_name, shell_complete=names_that_begin, required=False)
@click.option("--all", "with_all", is_flag=True, help="Also the domains that are as asked.")
@click.option(
    "--policy",
    type=click.Choice(list(_POLICIES)),
    help="Set what hvsvc does by itself when DOMAIN loses its ceiling: only report it, write the ceiling into the "
    "stored definition again, also grow the running domain again, or what the host's configuration says.",
)
@global_options(root=False)
@click.pass_context
def drift_command(ctx: click.Context, domain: str | None, with_all: bool, policy: str | None) -> None:
    """Compare what was asked for with what is there.

    DOMAIN, or every domain of which something is recorded and not there. That there is
    a drift is a report, not a failure: the exit code is 0.
    """
    if domain is None:
        if policy is not None:
            raise click.UsageError("--policy is set for one DOMAIN")
        _list(ctx, with_all=with_all)
        return
    if with_all:
        raise click.UsageError("--all is for a list, without DOMAIN")
    with connected(ctx, DRIFT_SHAPE) as service:
        timeout_s = service.settings.call_timeout_s
        if policy is None:
            reply = service.drift.GetDrift(drift_pb2.GetDriftRequest(name=domain), timeout=timeout_s)
        else:
            request = drift_pb2.SetReapplyPolicyRequest(name=domain, policy=_POLICIES[policy])
            reply = service.drift.SetReapplyPolicy(request, timeout=timeout_s)
        document = document_of(reply)
        print_one(service.settings, document, lambda: drift_lines(document))


@click.command("forget")
@click.argument("domain", type=domain_name, shell_complete=names_that_begin)
@global_options(root=False)
@click.pass_context
def forget_command(ctx: click.Context, domain: str) -> None:
    """Drop what was asked for.

    The domain itself is not touched; nothing is compared or re-applied any more until a
    change is asked again.
    """
    with connected(ctx, FORGOTTEN_SHAPE) as service:
        request = drift_pb2.ForgetDesiredStateRequest(name=domain)
        reply = service.drift.ForgetDesiredState(request, timeout=service.settings.call_timeout_s)
        document = document_of(reply)
        print_one(
            service.settings,
            document,
            lambda: [f"{safe(domain)}: forgotten: {desired_text(document.get('desired', {}))}"],
        )


def _list(ctx: click.Context, *, with_all: bool) -> None:
    with connected(ctx, DRIFT_SHAPE) as service:
        reply = service.drift.ListDrifts(
            drift_pb2.ListDriftsRequest(), timeout=service.settings.call_timeout_s
        )
        shown = [
            document_of(drift)
            for drift in reply.drifts
            if with_all or drift.status != desired_pb2.Drift.STATUS_IN_SYNC
        ]
        settings = service.settings
        if not shown and settings.output_format == "table" and not settings.columns:
            click.echo(nothing_text(len(reply.drifts)))
        else:
            print_many(settings, shown, HEADINGS, drift_row)
