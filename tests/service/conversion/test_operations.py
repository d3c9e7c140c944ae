"""Records to google.longrunning.Operation."""

from __future__ import annotations

from google.rpc.error_details_pb2 import ErrorInfo

from hvsvc.errors import AbortedError, FailedPreconditionError, Reason
from hvsvc.service.conversion.operations import to_operation
from hvsvc.v1 import scaling_pb2
from tests.fakes.domains import WEB_UUID, running
from tests.fakes.face import ended, record


def test_a_running_operation_has_metadata_alone() -> None:
    operation = to_operation(record(request_id="r-1", cancel_requested=True, server_name="web\ud800-1"))
    assert operation.name == "operations/op-1"
    assert not operation.done
    assert operation.WhichOneof("result") is None
    metadata = scaling_pb2.OperationMetadata()
    assert operation.metadata.Unpack(metadata)
    assert (metadata.domain, metadata.libvirt_name) == (f"domains/{WEB_UUID}", "instance-0000335c")
    assert metadata.server_name == "web?-1"
    assert (metadata.method, metadata.caller, metadata.request_id) == ("ScaleDomain", "unix", "r-1")
    assert metadata.cancel_requested
    assert metadata.create_time.seconds == 100
    assert not metadata.HasField("end_time")
    assert [step.state for step in metadata.steps] == [
        scaling_pb2.Step.STATE_DONE,
        scaling_pb2.Step.STATE_FAILED,
        scaling_pb2.Step.STATE_PENDING,
    ]


def test_an_operation_that_ended_holds_its_result() -> None:
    operation = to_operation(ended())
    assert operation.done
    result = scaling_pb2.ScaleResult()
    assert operation.response.Unpack(result)
    assert result.outcome == scaling_pb2.OUTCOME_PARTIAL
    assert result.changed
    assert [(each.reason, dict(each.metadata)) for each in result.reasons] == [
        ("GUEST_CPUS_OFFLINE", {"online": "3"})
    ]
    assert (result.before.id, result.after.id) == (7, 8)
    assert result.before.read_time.ToMilliseconds() == 90_000
    assert result.after.read_time.ToMilliseconds() == 97_500
    assert len(result.steps) == 3


def test_a_failure_holds_the_step_what_was_done_and_what_is_true_now() -> None:
    error = FailedPreconditionError(Reason.CEILING_LOST, "the hard reboot erased the ceiling", {"live": 2})
    operation = to_operation(record(end_time_s=110.0, error=error, failed_step=1, now=running(id=9)))
    assert operation.done
    assert operation.error.code == 9
    assert operation.error.message == "the hard reboot erased the ceiling"
    info, failure = ErrorInfo(), scaling_pb2.StepFailure()
    assert any(each.Unpack(info) for each in operation.error.details)
    assert info.reason == "CEILING_LOST"
    assert any(each.Unpack(failure) for each in operation.error.details)
    assert failure.failed.kind == scaling_pb2.Step.KIND_SET_VCPUS_LIVE
    assert [step.kind for step in failure.done] == [scaling_pb2.Step.KIND_SET_MEMORY_LIVE]
    assert failure.now.id == 9
    assert failure.now.read_time.seconds == 110


def test_a_failure_without_a_step_or_a_reading_says_neither() -> None:
    error = AbortedError(Reason.DAEMON_RESTARTED, "hvsvc was stopped")
    operation = to_operation(record(end_time_s=110.0, error=error))
    assert operation.error.code == 10
    assert not any(each.Is(scaling_pb2.StepFailure.DESCRIPTOR) for each in operation.error.details)
    operation = to_operation(record(end_time_s=110.0, error=error, failed_step=0))
    failure = scaling_pb2.StepFailure()
    assert any(each.Unpack(failure) for each in operation.error.details)
    assert not failure.HasField("now")
    assert len(failure.done) == 0
