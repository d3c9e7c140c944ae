"""Waiting for an operation through lost connections."""

from __future__ import annotations

import time

import grpc
import pytest
from google.longrunning.operations_pb2 import Operation
from google.rpc.status_pb2 import Status

from hvsvc.hvctl.wait import WaitTimeoutError, wait_for
from hvsvc.v1.operation_pb2_grpc import OperationServiceStub
from tests.fakes.hvsvc_server import FakeHvsvc
from tests.fakes.service_messages import ended, growth_steps, running, status


class Watcher:
    """Counts what wait_for tells."""

    def __init__(self) -> None:
        self.seen: list[Operation] = []
        self.lost_count = 0

    def lost(self) -> None:
        self.lost_count += 1


def wait(target: str, operation: Operation, watcher: Watcher, timeout_s: float = 30) -> Operation:
    with grpc.insecure_channel(target) as channel:
        stub = OperationServiceStub(channel)
        return wait_for(stub, operation, timeout_s, watcher.seen.append, watcher.lost)


def test_every_report_is_seen_in_order(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    watcher = Watcher()
    assert wait(target, fake.reports[0], watcher) == fake.reports[-1]
    assert watcher.seen == fake.reports
    assert watcher.lost_count == 0


def test_an_operation_that_is_done_is_not_watched(fake: FakeHvsvc, target: str) -> None:
    watcher = Watcher()
    assert wait(target, ended(), watcher) == ended()
    assert watcher.seen == [ended()]
    assert fake.seen == []


def test_a_lost_connection_is_taken_up_again(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.errors["WatchOperation"] = [None, None, None]
    watcher = Watcher()
    assert wait(target, fake.reports[0], watcher).done
    assert watcher.lost_count == 2
    assert len(fake.requests("WatchOperation")) == 3


def test_a_stream_that_ends_early_is_opened_again(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1))]
    watcher = Watcher()

    def finish(report: Operation) -> None:
        watcher.seen.append(report)
        fake.reports[1:] = [ended()]

    with grpc.insecure_channel(target) as channel:
        stub = OperationServiceStub(channel)
        assert wait_for(stub, fake.reports[0], 30, finish, watcher.lost).done
    assert watcher.lost_count == 0


def test_the_wait_has_an_end(fake: FakeHvsvc, target: str) -> None:
    fake.reports = [running(growth_steps(0)), running(growth_steps(1)), ended()]
    fake.released.clear()
    watcher = Watcher()
    begun_s = time.monotonic()
    with pytest.raises(WaitTimeoutError) as caught:
        wait(target, fake.reports[0], watcher, timeout_s=3)
    assert caught.value.operation == fake.reports[1]
    assert time.monotonic() - begun_s >= 3


@pytest.mark.parametrize("code", [5, 7, 13])
def test_an_error_that_trying_again_does_not_mend_ends_the_wait(
    fake: FakeHvsvc, target: str, code: int
) -> None:
    sent: Status = status(code, "no")
    fake.errors["WatchOperation"] = [sent]
    with pytest.raises(grpc.RpcError) as caught:
        wait(target, running([]), Watcher())
    assert caught.value.code().value[0] == code
