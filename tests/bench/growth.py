"""Live growth by two vCPUs, confirmed by the guest, against the same sequence by hand."""

from __future__ import annotations

import time
from typing import Any

import grpc
import libvirt
from google.longrunning.operations_pb2 import Operation, WaitOperationRequest
from google.longrunning.operations_pb2_grpc import OperationsStub

from hvsvc.v1.scaling_pb2 import (
    AFFECT_LIVE,
    OUTCOME_COMPLETE,
    OperationMetadata,
    ScaleResult,
    SetVcpusRequest,
    Step,
)
from hvsvc.v1.scaling_pb2_grpc import ScalingServiceStub
from tests.bench.comparison import Times, compare, time_once, where_time_goes
from tests.bench.site import Site
from tests.guest_domains import ask_agent, read_guest_cpus

TARGET = 1.10
BOOTED, ADDED = 2, 2
_POLL_S = 0.01
_TIMEOUT_S = 60.0


def grow_by_hand(domain: libvirt.virDomain, vcpus: int) -> None:
    """Plugs, looks until the guest sees the CPUs, brings them online, looks again."""
    before = set(read_guest_cpus(domain))
    domain.setVcpusFlags(vcpus, libvirt.VIR_DOMAIN_AFFECT_LIVE)
    deadline = time.monotonic() + _TIMEOUT_S
    while len(cpus := read_guest_cpus(domain)) < vcpus:
        assert time.monotonic() < deadline, cpus
        time.sleep(_POLL_S)
    new = [{"logical-id": cpu, "online": True} for cpu in sorted(set(cpus) - before)]
    ask_agent(domain, "guest-set-vcpus", vcpus=new)
    assert sum(read_guest_cpus(domain).values()) == vcpus


def grow_by_hvsvc(channel: grpc.Channel, uuid: str, vcpus: int) -> dict[str, float]:
    """One call, and its end, which must be COMPLETE; how long its parts took, seconds."""
    started_s = time.perf_counter()
    request = SetVcpusRequest(name=f"domains/{uuid}", vcpus=vcpus, affect=AFFECT_LIVE)
    begun = ScalingServiceStub(channel).SetVcpus(request, timeout=_TIMEOUT_S)
    begun_s = time.perf_counter() - started_s
    ended: Operation = OperationsStub(channel).WaitOperation(  # type: ignore[no-untyped-call]
        WaitOperationRequest(name=begun.name), timeout=_TIMEOUT_S
    )
    result = ScaleResult()
    assert ended.response.Unpack(result), ended
    assert result.outcome == OUTCOME_COMPLETE, result
    return {"the_call_until_the_operation_is_journaled": begun_s} | read_parts(ended)


def read_parts(operation: Operation) -> dict[str, float]:
    """How long each step took, and the judging after the last; seconds."""
    metadata = OperationMetadata()
    assert operation.metadata.Unpack(metadata)
    parts = {}
    for step in metadata.steps:
        parts[Step.Kind.Name(step.kind).removeprefix("KIND_")] = _seconds(step.end_time) - _seconds(
            step.start_time
        )
    parts["reading_all_back_and_judging"] = _seconds(metadata.end_time) - _seconds(
        metadata.steps[-1].end_time
    )
    return parts


def measure(site: Site, pairs: int, guests: int) -> dict[str, Any]:
    """`pairs` growths of each kind in each of `guests`; never unplugs, so each guest grows on and on.

    A guest with more CPUs is slower, so the two take turns at being first.
    """
    by_hand: list[float] = []
    by_hvsvc: list[float] = []
    parts: list[dict[str, float]] = []
    channel = site.channels["unix"]

    def through_hvsvc(uuid: str, vcpus: int) -> None:
        parts.append(grow_by_hvsvc(channel, uuid, vcpus))

    for number in range(guests):
        domain = site.domains.boot(vcpus=BOOTED, max_vcpus=BOOTED + 2 * pairs * ADDED)
        uuid, vcpus = domain.UUIDString(), BOOTED
        for turn in range(2 * pairs):
            vcpus += ADDED
            # A B, B A, A B …
            if (turn + turn // 2 + number) % 2 == 0:
                by_hand.append(time_once(lambda vcpus=vcpus, domain=domain: grow_by_hand(domain, vcpus)))  # type: ignore[misc]
            else:
                by_hvsvc.append(time_once(lambda vcpus=vcpus, uuid=uuid: through_hvsvc(uuid, vcpus)))  # type: ignore[misc]
        site.domains.remove(domain)
    times = {"SetVcpus": Times(tuple(by_hvsvc)), "by hand": Times(tuple(by_hand))}
    return {
        "against_by_hand": compare(times, "SetVcpus", ("by hand",), target=TARGET),
        **where_time_goes(**{name: Times(tuple(each[name] for each in parts)) for name in parts[0]}),
    }


def _seconds(stamp: Any) -> float:
    return float(stamp.ToNanoseconds()) / 1e9
