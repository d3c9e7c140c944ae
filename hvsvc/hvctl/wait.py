"""Waits for an operation by its stream of progress."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import grpc
from google.longrunning.operations_pb2 import Operation

from hvsvc.v1.operation_pb2 import WatchOperationRequest
from hvsvc.v1.operation_pb2_grpc import OperationServiceStub

#: A stream is opened anew after this time: a connection that died without a word is found.
STREAM_TIMEOUT_S: Final = 60.0
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0


class WaitTimeoutError(Exception):
    """The operation still runs at the end of the wait."""

    def __init__(self, operation: Operation) -> None:
        super().__init__(operation.name)
        self.operation = operation


def wait_for(
    stub: OperationServiceStub,
    operation: Operation,
    timeout_s: float,
    seen: Callable[[Operation], None],
    lost: Callable[[], None],
) -> Operation:
    """The finished operation.

    :param seen: called with each report, the first one included.
    :param lost: called when the service cannot be reached; the wait goes on.
    :raise WaitTimeoutError: when `timeout_s` is over.
    :raise grpc.RpcError: for an error that trying again does not mend.
    """
    deadline = time.monotonic() + timeout_s
    pause_s = FIRST_PAUSE_S
    seen(operation)
    while not operation.done:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            raise WaitTimeoutError(operation)
        request = WatchOperationRequest(name=operation.name)
        try:
            for report in stub.WatchOperation(request, timeout=min(left_s, STREAM_TIMEOUT_S)):
                operation = report
                pause_s = FIRST_PAUSE_S
                seen(operation)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                lost()
            elif error.code() is not grpc.StatusCode.DEADLINE_EXCEEDED:
                raise
        if not operation.done:
            time.sleep(min(pause_s, max(deadline - time.monotonic(), 0)))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)
    return operation
