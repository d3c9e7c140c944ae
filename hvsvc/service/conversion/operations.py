"""An operation's record to google.longrunning.Operation, its metadata, response and error packed."""

from __future__ import annotations

from google.longrunning.operations_pb2 import Operation

from hvsvc.domain.operation import OperationRecord, Result
from hvsvc.domain.steps import StepState
from hvsvc.service.conversion.domains import resource_name, timestamp, to_domain
from hvsvc.service.conversion.scaling import OUTCOMES, to_reason, to_step
from hvsvc.service.status import clean, to_status
from hvsvc.v1 import scaling_pb2


def operation_name(operation_id: str) -> str:
    """`operations/{id}`; "" for what was only validated, which is kept nowhere."""
    return operation_id and f"operations/{operation_id}"


def to_operation(record: OperationRecord) -> Operation:
    """The whole operation: metadata always, a response or an error once it is done."""
    operation = Operation(name=operation_name(record.id), done=record.done)
    operation.metadata.Pack(_metadata(record))
    if record.result is not None:
        operation.response.Pack(_response(record, record.result))
    elif record.error is not None:
        extra = () if record.failed_step is None else (_failure(record, record.failed_step),)
        operation.error.CopyFrom(to_status(record.error, extra))
    return operation


def _metadata(record: OperationRecord) -> scaling_pb2.OperationMetadata:
    return scaling_pb2.OperationMetadata(
        domain=resource_name(record.uuid),
        libvirt_name=clean(record.libvirt_name),
        server_name=clean(record.server_name),
        method=record.target.method.value,
        caller=clean(record.caller),
        request_id=record.request_id,
        create_time=timestamp(record.create_time_s),
        end_time=None if record.end_time_s is None else timestamp(record.end_time_s),
        steps=[to_step(step) for step in record.steps],
        cancel_requested=record.cancel_requested,
    )


def _response(record: OperationRecord, result: Result) -> scaling_pb2.ScaleResult:
    return scaling_pb2.ScaleResult(
        outcome=OUTCOMES[result.outcome],
        reasons=[to_reason(note) for note in result.reasons],
        changed=result.changed,
        before=to_domain(result.before, record.create_time_s),
        after=to_domain(result.after, record.end_time_s),
        steps=[to_step(step) for step in record.steps],
    )


def _failure(record: OperationRecord, failed_step: int) -> scaling_pb2.StepFailure:
    done = [to_step(step) for step in record.steps[:failed_step] if step.state is StepState.DONE]
    return scaling_pb2.StepFailure(
        failed=to_step(record.steps[failed_step]),
        done=done,
        now=None if record.now is None else to_domain(record.now, record.end_time_s),
    )
