"""One command's connection to hvsvc: its stubs, and errors turned into a report and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import grpc
from google.longrunning.operations_pb2_grpc import OperationsStub

from hvsvc.hvctl import exit_codes
from hvsvc.hvctl.channel import open_channel
from hvsvc.hvctl.columns import check_columns
from hvsvc.hvctl.document import Shape
from hvsvc.hvctl.failure import failure_of_call
from hvsvc.hvctl.report import report
from hvsvc.hvctl.settings import Settings, settings_of
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from hvsvc.v1.drift_pb2_grpc import DriftServiceStub
from hvsvc.v1.operation_pb2_grpc import OperationServiceStub
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub


@dataclass(frozen=True, slots=True)
class Service:
    """The stubs of one channel, and the settings of the run."""

    settings: Settings
    channel: grpc.Channel

    @property
    def domains(self) -> DomainServiceStub:
        """Reads domains."""
        return DomainServiceStub(self.channel)

    @property
    def scaling(self) -> ScalingServiceStub:
        """Plans and changes sizes."""
        return ScalingServiceStub(self.channel)

    @property
    def drift(self) -> DriftServiceStub:
        """Compares what was asked for with what is there."""
        return DriftServiceStub(self.channel)

    @property
    def progress(self) -> OperationServiceStub:
        """Follows operations."""
        return OperationServiceStub(self.channel)

    @property
    def operations(self) -> Any:
        """Reads, lists, cancels and deletes operations."""
        return OperationsStub(self.channel)  # type: ignore[no-untyped-call]  # generated without types


@contextmanager
def connected(ctx: click.Context, shape: Shape) -> Iterator[Service]:
    """Connect for one command whose output has this shape.

    A column that the output cannot have is refused before anything is sent. A call's
    error is reported and ends hvctl with its exit code.
    """
    settings = settings_of(ctx)
    check_columns(settings.columns, shape)
    with open_channel(settings) as channel:
        try:
            yield Service(settings, channel)
        except grpc.RpcError as error:
            failure = failure_of_call(error, settings.target)
            report(settings, failure)
            ctx.exit(exit_codes.for_status(failure.code))
