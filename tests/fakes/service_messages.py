"""Messages of hvsvc as a client sees them: one domain of a Nova server, plans and operations on it."""

from __future__ import annotations

from collections.abc import Sequence

from google.longrunning.operations_pb2 import Operation
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from hvsvc.v1 import desired_pb2, domain_pb2, scaling_pb2

UUID = "6d0f2f04-3f4b-4a55-9b7f-9a4c8f0d1a11"
OPERATION = "operations/0b7c"
MIB = 1 << 10
GIB = 1 << 20
BEGAN_S = 1_700_000_000


def domain(
    *, vcpus: int = 2, max_vcpus: int = 2, memory_kib: int = 512 * MIB, **fields: object
) -> domain_pb2.Domain:
    """The running domain `instance-0000335c` of the Nova server `web-1`."""
    report = domain_pb2.Domain(
        name=f"domains/{UUID}",
        uuid=UUID,
        libvirt_name="instance-0000335c",
        id=7,
        state=domain_pb2.DOMAIN_STATE_RUNNING,
        os_type="hvm",
        cpu_time=Duration(seconds=12, nanos=500_000_000),
        persistent=True,
        security_model="apparmor",
        security_doi="0",
        vcpus=domain_pb2.Vcpus(
            maximum_config=max_vcpus,
            maximum_live=max_vcpus,
            current_config=vcpus,
            current_live=vcpus,
            guest_present=vcpus,
            guest_online=vcpus,
        ),
        memory=domain_pb2.Memory(
            maximum_config_kib=GIB,
            maximum_live_kib=GIB,
            current_config_kib=memory_kib,
            current_live_kib=memory_kib,
            balloon_actual_kib=memory_kib,
        ),
        topology=domain_pb2.DomainTopology(
            config=domain_pb2.Topology(sockets=max_vcpus, dies=1, clusters=1, cores=1, threads=1)
        ),
        nova=domain_pb2.NovaServer(
            server_id=UUID,
            name="web-1",
            flavor="m1.small",
            flavor_vcpus=2,
            flavor_memory_mib=512,
            project="shop",
        ),
        etag="aa11",
        virt_type="qemu",
        arch="x86_64",
        machine="pc-q35-7.2",
        placement=domain_pb2.Placement(
            vcpu_pins=[domain_pb2.VcpuPin(vcpu=0, cpuset="3")], balloon_model="virtio"
        ),
        read_time=Timestamp(seconds=BEGAN_S),
    )
    report.MergeFrom(domain_pb2.Domain(**fields))  # type: ignore[arg-type]
    return report


def off_domain() -> domain_pb2.Domain:
    """A domain that is off and not Nova's: what only a running one has is absent."""
    return domain_pb2.Domain(
        name="domains/11111111-2222-4333-8444-555555555555",
        uuid="11111111-2222-4333-8444-555555555555",
        libvirt_name="backup",
        state=domain_pb2.DOMAIN_STATE_SHUT_OFF,
        os_type="hvm",
        persistent=True,
        vcpus=domain_pb2.Vcpus(maximum_config=4, current_config=1),
        memory=domain_pb2.Memory(maximum_config_kib=GIB, current_config_kib=GIB),
    )


def host() -> domain_pb2.Host:
    """A host of 8 CPUs with two running domains."""
    return domain_pb2.Host(
        pcpus=8,
        memory_kib=64 * GIB,
        vcpu_capacity=128,
        memory_capacity_kib=96 * GIB,
        running_domains=2,
        current_vcpus=4,
        maximum_vcpus=16,
        current_memory_kib=2 * GIB,
        maximum_memory_kib=4 * GIB,
        vcpus_left=124,
        memory_left_kib=94 * GIB,
        read_time=Timestamp(seconds=BEGAN_S),
    )


def drift(
    status: desired_pb2.Drift.Status.ValueType = desired_pb2.Drift.STATUS_CEILING_LOST, **fields: object
) -> desired_pb2.Drift:
    """What the domain above was asked for, and lost."""
    found = desired_pb2.Drift(
        domain=f"domains/{UUID}",
        libvirt_name="instance-0000335c",
        server_name="web-1",
        status=status,
        desired=desired_pb2.DesiredState(
            max_vcpus=8,
            max_memory_kib=GIB,
            vcpus=4,
            topology="sockets",
            caller="unix",
            record_time=Timestamp(seconds=BEGAN_S),
        ),
        policy=desired_pb2.REAPPLY_POLICY_REPORT,
    )
    if status == desired_pb2.Drift.STATUS_CEILING_LOST:
        found.differences.append("stored maximum vCPUs: 8 asked, 2 found")
        found.waits_for = "the policy is report: hvsvc changes nothing by itself"
        found.next_step = (
            "write the ceiling again (hvctl raise, or policy config: hvctl drift DOMAIN --policy config), then reboot "
            "softly (hvctl reboot)"
        )
    found.MergeFrom(desired_pb2.Drift(**fields))  # type: ignore[arg-type]
    return found


def step(
    kind: scaling_pb2.Step.Kind.ValueType,
    state: scaling_pb2.Step.State.ValueType,
    *,
    effect: scaling_pb2.Step.Effect.ValueType = scaling_pb2.Step.EFFECT_LIVE,
    took_s: float | None = None,
    why: str = "",
    evidence: str = "",
) -> scaling_pb2.Step:
    """A step that began at BEGAN_S, and ended after `took_s` where that is given."""
    record = scaling_pb2.Step(kind=kind, effect=effect, state=state, why=why, evidence=evidence)
    if state != scaling_pb2.Step.STATE_PENDING:
        record.start_time.FromSeconds(BEGAN_S)
    if took_s is not None:
        record.end_time.FromMilliseconds(BEGAN_S * 1000 + round(took_s * 1000))
    return record


def growth_steps(done: int) -> list[scaling_pb2.Step]:
    """The steps of a live growth, the first `done` of them done and the next one running."""
    steps = []
    kinds = (
        (
            scaling_pb2.Step.KIND_SET_MEMORY_LIVE,
            "memory 512 MiB to 1 GiB",
            "balloon at 1 GiB, guest total 966 MiB",
        ),
        (scaling_pb2.Step.KIND_SET_VCPUS_LIVE, "vCPUs 2 to 8", "live vCPUs 8"),
        (scaling_pb2.Step.KIND_ONLINE_GUEST_CPUS, "CPUs 2-7 are new", "the guest uses 8 of 8 CPUs"),
    )
    for number, (kind, why, evidence) in enumerate(kinds):
        if number < done:
            steps.append(
                step(kind, scaling_pb2.Step.STATE_DONE, took_s=0.4 + number, why=why, evidence=evidence)
            )
        elif number == done:
            steps.append(step(kind, scaling_pb2.Step.STATE_RUNNING, why=why))
        else:
            steps.append(step(kind, scaling_pb2.Step.STATE_PENDING, why=why))
    return steps


def running(steps: Sequence[scaling_pb2.Step], *, name: str = OPERATION) -> Operation:
    """An operation under way."""
    return _operation(name, steps, done=False)


def ended(
    outcome: scaling_pb2.Outcome.ValueType = scaling_pb2.OUTCOME_COMPLETE,
    *,
    name: str = OPERATION,
    changed: bool = True,
    reasons: Sequence[scaling_pb2.Reason] = (),
    after: domain_pb2.Domain | None = None,
) -> Operation:
    """An operation that ended with a ScaleResult."""
    steps = growth_steps(3)
    operation = _operation(name, steps, done=True)
    result = scaling_pb2.ScaleResult(
        outcome=outcome,
        changed=changed,
        reasons=reasons,
        steps=steps,
        before=domain(max_vcpus=8),
        after=after or domain(vcpus=8, max_vcpus=8, memory_kib=GIB),
    )
    operation.response.Pack(result)
    return operation


def failed(code: int, message: str, details: Sequence[Message] = (), *, name: str = OPERATION) -> Operation:
    """An operation that ended with an error."""
    operation = _operation(name, growth_steps(1), done=True)
    operation.error.CopyFrom(status(code, message, details))
    return operation


def status(code: int, message: str, details: Sequence[Message] = ()) -> Status:
    """A google.rpc.Status with these details."""
    packed = Status(code=code, message=message)
    for detail in details:
        packed.details.add().Pack(detail)
    return packed


def error_info(reason: str, **metadata: str) -> ErrorInfo:
    """The detail that each of hvsvc's errors has."""
    return ErrorInfo(reason=reason, domain="hvsvc", metadata=metadata)


def _operation(name: str, steps: Sequence[scaling_pb2.Step], *, done: bool) -> Operation:
    operation = Operation(name=name, done=done)
    metadata = scaling_pb2.OperationMetadata(
        domain=f"domains/{UUID}",
        libvirt_name="instance-0000335c",
        server_name="web-1",
        method="ScaleDomain",
        caller="local",
        steps=steps,
        create_time=Timestamp(seconds=BEGAN_S),
    )
    operation.metadata.Pack(metadata)
    return operation
