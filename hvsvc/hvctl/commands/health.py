"""`health`: whether the service answers and can do its work."""

from __future__ import annotations

import click
from grpc_health.v1 import health_pb2, health_pb2_grpc

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.output import print_one
from hvsvc.hvctl.service import connected
from hvsvc.hvctl.settings import global_options
from hvsvc.hvctl.terminal import safe


@click.command("health")
@click.argument("service_name", metavar="[SERVICE]", default="")
@global_options(root=False)
@click.pass_context
def health_command(ctx: click.Context, service_name: str) -> None:
    """Ask whether hvsvc can do its work.

    Of the whole, or of one SERVICE such as hvsvc.v1.ScalingService. Exit code 0 means
    SERVING, 6 that it is not.
    """
    with connected(ctx, {"status": None, "service": None, "target": None}) as service:
        request = health_pb2.HealthCheckRequest(service=service_name)
        reply = health_pb2_grpc.HealthStub(service.channel).Check(
            request, timeout=service.settings.call_timeout_s
        )
        status = health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status)
        document = {"status": status, "target": service.settings.target}
        if service_name:
            document["service"] = service_name
        name = service_name or "hvsvc"
        print_one(
            service.settings, document, lambda: [safe(f"{name} at {service.settings.target}: {status}")]
        )
        ctx.exit(exit_codes.OK if status == "SERVING" else exit_codes.UNAVAILABLE)
