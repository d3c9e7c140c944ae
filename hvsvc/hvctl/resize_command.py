"""Puts `scale --via resize` together: what hvsvc says of the road, consent, the resize, and the report."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Final, NoReturn

import click
import grpc
from click.core import ParameterSource

from hvsvc.errors import Reason
from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.change_text import operation_lines
from hvsvc.hvctl.channel import open_channel
from hvsvc.hvctl.cloud import Cloud, CloudError, CloudServer
from hvsvc.hvctl.document import Document, Shape, document_of
from hvsvc.hvctl.failure import Failure
from hvsvc.hvctl.interrupt import if_interrupted
from hvsvc.hvctl.locate import target_of, target_template
from hvsvc.hvctl.operation import OPERATION_SHAPE
from hvsvc.hvctl.output import print_one
from hvsvc.hvctl.report import explain, report
from hvsvc.hvctl.resize import Resize, ResizeError
from hvsvc.hvctl.resize_verdict import Size, find_differences
from hvsvc.hvctl.service import Service, connected
from hvsvc.hvctl.settings import Settings
from hvsvc.v1 import domain_pb2, domain_pb2_grpc, scaling_pb2

RESIZE_SHAPE: Final[Shape] = {
    **{key: shape for key, shape in OPERATION_SHAPE.items() if key not in {"name", "request_id"}},
    "flavor": None,
}
#: what the flavor decides, or what only an operation of hvsvc has
_NOT_FOR_RESIZE: Final = ("max_vcpus", "max_memory_kib", "topology", "guest_cpus", "request_id", "no_wait")


class _RefusedError(Exception):
    """The resize is not begun; nothing was changed."""

    def __init__(
        self, code: str, reason: Reason, message: str, metadata: dict[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.failure = Failure(code, f"{message}; nothing was changed", reason.value, metadata or {})


def run_resize(ctx: click.Context, domain: str, fields: Mapping[str, Any]) -> None:
    """Resize the server and end hvctl with the exit code of what came of it.

    :raise click.UsageError: for options that this road has not, or without a cloud.
    """
    named = [
        name for name in _NOT_FOR_RESIZE if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    ]
    if named:
        options = ", ".join(_option_of(ctx, name) for name in named)
        raise click.UsageError(
            f"--via resize has no use for {options}: the flavor decides, and hvctl itself must wait"
        )
    if fields["vcpus"] is None and fields["memory_kib"] is None:
        raise click.UsageError("--via resize needs a size: --vcpus, --memory, or both")
    with connected(ctx, RESIZE_SHAPE) as service:
        settings = service.settings
        if settings.cloud is None:
            raise click.UsageError(
                "--via resize goes through Nova with your own credential: give --cloud NAME"
            )
        try:
            cloud = Cloud(settings.cloud, settings.call_timeout_s)
            plan = _read_plan(service, domain, fields)
            resize = _prepare(service, cloud, plan, fields)
        except (_RefusedError, CloudError) as err:
            report(settings, err.failure)
            ctx.exit(exit_codes.for_status(err.failure.code))
        with ExitStack() as channels:
            resize.read_domain = _Reader(service, cloud, channels).read
            _run(ctx, settings, resize, dry_run=fields["validate_only"])


def _read_plan(service: Service, domain: str, fields: Mapping[str, Any]) -> Document:
    request = scaling_pb2.PlanScaleRequest(
        name=domain, vcpus=fields["vcpus"], memory_kib=fields["memory_kib"]
    )
    return document_of(service.scaling.PlanScale(request, timeout=service.settings.call_timeout_s))


def _prepare(service: Service, cloud: Cloud, plan: Document, fields: Mapping[str, Any]) -> Resize:
    before = plan["domain"]
    if fields["etag"] and fields["etag"] != plan.get("etag"):
        raise _RefusedError(
            "ABORTED",
            Reason.DEFINITION_CHANGED,
            f"the stored definition has etag {plan.get('etag')}, not {fields['etag']}",
        )
    if not before.get("nova"):
        raise _RefusedError(
            "FAILED_PRECONDITION",
            Reason.SERVER_NOT_FOUND,
            "the domain is not Nova's: there is no server to resize",
        )
    server = cloud.read_server(before["uuid"])
    return Resize(
        cloud,
        server,
        _flavor(server, plan, fields),
        lambda _server: before,
        before,
        time.monotonic() + service.settings.wait_timeout_s,
        follows=service.settings.located,
    )


def _flavor(server: CloudServer, plan: Document, fields: Mapping[str, Any]) -> Document:
    """The flavor to take: that of just the size; the server's own where it has it already."""
    if (state := plan["domain"].get("state")) != "RUNNING":
        _check_ready(server)
        message = f"the domain is in state {state}, whatever Nova says; bring it to run first (openstack server start)"
        raise _RefusedError("FAILED_PRECONDITION", Reason.DOMAIN_NOT_RUNNING, message)
    vcpus = fields["vcpus"] or plan["domain"]["vcpus"]["current_live"]
    memory_mib = -(-(fields["memory_kib"] or plan["domain"]["memory"]["current_live_kib"]) // 1024)
    own = {"name": server.flavor, "vcpus": server.flavor_vcpus, "memory_mib": server.flavor_memory_mib}
    if (own["vcpus"], own["memory_mib"]) == (vcpus, memory_mib):
        if find_differences(plan["domain"], Size(vcpus, memory_mib * 1024)):
            raise _RefusedError(
                "FAILED_PRECONDITION",
                Reason.NOVA_REFUSED,
                f"the server's flavor {server.flavor} has just this size, though the domain differs from it now; scale "
                "it without --via resize",
            )
        return own
    if fields["reboot"] != scaling_pb2.REBOOT_MODE_SOFT:
        raise _RefusedError(
            "FAILED_PRECONDITION",
            Reason.REBOOT_REQUIRED,
            "a resize through Nova restarts the server, to which the request does not consent (--reboot soft)",
        )
    _check_ready(server)
    resize = plan.get("resize")
    if resize is None:
        raise _RefusedError(
            "UNAVAILABLE",
            Reason.NOVA_UNAVAILABLE,
            "hvsvc could not ask Nova which flavors the server may have",
        )
    if exact := resize.get("exact"):
        chosen: Document = exact
        return chosen
    above = resize.get("above")
    size = f"{vcpus} vCPUs and {memory_mib} MiB"
    raise _RefusedError(
        "FAILED_PRECONDITION",
        Reason.NOVA_REFUSED,
        f"no flavor that the server may have has just {size}; the smallest above is {above['name']}: --vcpus "
        f"{above['vcpus']} --memory {above['memory_mib']}MiB"
        if above
        else "; ".join(resize["consequences"]) or f"no flavor has {size}",
    )


def _check_ready(server: CloudServer) -> None:
    if server.task_state is not None:
        raise _RefusedError(
            "ABORTED",
            Reason.SERVER_BUSY,
            f"Nova is at work on server {server.name} (task {server.task_state})",
        )
    if server.locked:
        raise _RefusedError("FAILED_PRECONDITION", Reason.SERVER_LOCKED, f"server {server.name} is locked")
    if server.status != "ACTIVE":
        raise _RefusedError(
            "FAILED_PRECONDITION",
            Reason.SERVER_NOT_ACTIVE,
            f"server {server.name} is in status {server.status}; it is resized while ACTIVE",
        )
    if server.host_status in {"UNKNOWN", "DOWN"}:
        raise _RefusedError(
            "UNAVAILABLE",
            Reason.NOVA_UNAVAILABLE,
            f"nova-compute on the host of server {server.name} does not report to Nova (host_status "
            f"{server.host_status}): Nova would take the resize, and put the server into ERROR once it is back",
        )


def _run(ctx: click.Context, settings: Settings, resize: Resize, *, dry_run: bool) -> NoReturn:
    already = "id" not in resize.flavor
    document: Document = {
        "done": True,
        "flavor": resize.flavor["name"],
        "changed": False,
        "reasons": resize.reasons,
        "before": resize.before,
        "steps": resize.steps,
    }
    failure: Failure | None = None
    try:
        if dry_run and not already:
            document["steps"] = resize.planned_steps()
        if already or dry_run:
            document |= {"outcome": "VALIDATED" if dry_run else "COMPLETE", "after": resize.before}
        else:
            with if_interrupted(lambda: _interrupted(resize)):
                document |= {"outcome": resize.run(), "changed": True}
    except ResizeError as err:
        failure = err.failure
    except CloudError as err:
        failure = _lost(resize, err.failure)
    if resize.taken:
        document["changed"] = True
        _read_after(resize, document)
    if failure:
        document["error"] = failure.document
        document.pop("outcome", None)
    print_one(settings, document, lambda: operation_lines(document, with_steps=True))
    if failure:
        explain(settings, failure)
        ctx.exit(exit_codes.for_status(failure.code))
    ctx.exit(exit_codes.for_outcome(document["outcome"], reboot_asked=True))


def _read_after(resize: Resize, document: Document) -> None:
    """The domain at the end; an outcome holds only where it still is as the flavor says."""
    try:
        after = resize.read(resize.cloud.read_server(resize.server.id))
    except CloudError:
        after = None
    if after is not None:
        document["after"] = after
    if document.get("outcome") != "COMPLETE":
        return
    faults = (
        ["the domain could not be read at the end"] if after is None else find_differences(after, resize.size)
    )
    if faults:
        reason = Reason.LIBVIRT_UNAVAILABLE if after is None else Reason.TARGET_NOT_REACHED
        document["outcome"] = "UNCONFIRMED" if after is None else "PARTIAL"
        resize.reasons.append({"reason": reason.value, "message": "; ".join(faults), "metadata": {}})


def _lost(resize: Resize, failure: Failure) -> Failure:
    server = resize.server
    if resize.taken:
        state = (
            f"the resize of server {server.name} was begun; see openstack server show {server.id}; in VERIFY_RESIZE it "
            f"waits for openstack server resize confirm {server.id}, or openstack server resize revert"
        )
    elif failure.code == "UNAVAILABLE":
        state = f"whether Nova took the resize is not known; see openstack server show {server.id}"
    else:
        state = "nothing was changed"
    return replace(failure, message=f"{failure.message}; {state}")


def _interrupted(resize: Resize) -> list[str]:
    return [
        f"hvctl: Nova goes on with the resize of server {resize.server.id}; nobody confirms it now",
        f"  look:    openstack server show {resize.server.id}",
        f"  confirm: openstack server resize confirm {resize.server.id}",
        f"  revert:  openstack server resize revert {resize.server.id}",
    ]


def _option_of(ctx: click.Context, name: str) -> str:
    return next(param.opts[-1] for param in ctx.command.params if param.name == name)


class _Reader:
    """Reads the server's domain where it is now: a resize may have moved it to another host."""

    def __init__(self, service: Service, cloud: Cloud, channels: ExitStack) -> None:
        self._service = service
        self._cloud = cloud
        self._channels = channels
        self._target = service.settings.target
        self._channel = service.channel

    def read(self, server: CloudServer) -> Document | None:
        """The whole report of the domain; None where no hvsvc answers for it."""
        self._follow(server)
        request = domain_pb2.GetDomainRequest(name=f"domains/{server.id}", view=domain_pb2.DOMAIN_VIEW_FULL)
        stub = domain_pb2_grpc.DomainServiceStub(self._channel)
        try:
            return document_of(stub.GetDomain(request, timeout=self._service.settings.call_timeout_s))
        except grpc.RpcError:
            return None

    def _follow(self, server: CloudServer) -> None:
        settings = self._service.settings
        if not settings.located or server.host is None:
            return
        target = target_of(server, target_template(settings), self._cloud.name)
        if target != self._target:
            self._target = target
            self._channel = self._channels.enter_context(open_channel(replace(settings, target=target)))
