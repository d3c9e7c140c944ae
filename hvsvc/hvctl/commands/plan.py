"""`plan`: what a target needs, without changing anything."""

from __future__ import annotations

from typing import Any, Final

import click

from hvsvc.hvctl.change_options import refuse_nothing_asked, target_options
from hvsvc.hvctl.change_text import plan_lines
from hvsvc.hvctl.document import document_of, shape_of
from hvsvc.hvctl.output import print_one
from hvsvc.hvctl.service import connected
from hvsvc.v1 import scaling_pb2

PLAN_SHAPE: Final = shape_of(scaling_pb2.PlanScaleResponse.DESCRIPTOR)


@click.command("plan")
@target_options
@click.pass_context
def plan_command(ctx: click.Context, /, domain: str, **target: Any) -> None:
    """Show what scale would do.

    Each step LIVE or REBOOT and why, blockers, warnings, and the change of the stored
    definition. Changes nothing. Blockers are part of the answer, so the exit code is 0; scale
    --dry-run ends with the code that the refusal would have.
    """
    refuse_nothing_asked(target)
    request = scaling_pb2.PlanScaleRequest(name=domain, **target)
    with connected(ctx, PLAN_SHAPE) as service:
        document = document_of(service.scaling.PlanScale(request, timeout=service.settings.call_timeout_s))
        print_one(service.settings, document, lambda: plan_lines(document))
