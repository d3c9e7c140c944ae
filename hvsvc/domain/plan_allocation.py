"""Which allocation a domain's truth means, and the steps of a plan that keep Placement at it (case API-04)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hvsvc.domain.allocation import AllocationFacts, PlacementPolicy, Size, check_room
from hvsvc.domain.check_live import current_memory_kib, has_balloon
from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.limits import MIB_KIB
from hvsvc.domain.obstacles import EDITABLE_STATUSES, runs_elsewhere
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, Step, StepKind
from hvsvc.domain.verify_stored import Finding
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, FailedPreconditionError, HvsvcError, Reason, UnavailableError

#: Nova's statuses in which the allocation is the server's own and Nova is not about to replace it
_SETTLED_STATUSES = EDITABLE_STATUSES | {"SHUTOFF"}


def true_size(domain: DomainFacts) -> Size:
    """The allocation that the domain's truth means: the largest of what runs, what is stored, and the flavor.

    What is stored runs after the next soft reboot, the flavor after the next hard one
    (nova.md's table, measured); nobody asks Placement then. So a domain shrunk below its
    flavor keeps the flavor's allocation.
    """
    return _size(_live(domain), None if domain.config is None else _booted(domain.config), _flavor(domain))


@dataclass(frozen=True, slots=True)
class Course:
    """Sizes that a domain goes through when a plan's steps are done: the largest on the way, and the last."""

    largest: Size
    last: Size


def foresee(domain: DomainFacts, steps: tuple[Step, ...]) -> Course:
    """Follows the sizes through the steps of a plan."""
    live = _live(domain)
    config = None if domain.config is None else _booted(domain.config)
    flavor = _flavor(domain)
    largest = last = _size(live, config, flavor)
    for step in steps:
        if step.kind is StepKind.DEFINE_CONFIG and step.xml is not None:
            config = _booted(parse_definition(step.xml))
        elif step.kind is StepKind.REBOOT:
            live = config
        elif step.kind is StepKind.SET_VCPUS_LIVE and live is not None and step.value is not None:
            live = Size(step.value, live.memory_mib)
        elif step.kind is StepKind.SET_MEMORY_LIVE and live is not None and step.value is not None:
            live = Size(live.vcpus, _mib(step.value))
        last = _size(live, config, flavor)
        largest = largest.larger(last)
    return Course(largest, last)


def plan_allocation(world: World, steps: tuple[Step, ...]) -> tuple[Part, Part]:
    """Plans what goes before the other steps, and what goes after them.

    Under ENFORCE the allocation is raised to the largest size on the way before anything
    changes, and brought to the last one at the end. Under REPORT a growth beyond it is
    only warned of.
    """
    none = Part(), Part()
    if not steps or world.domain.nova is None or world.placement is PlacementPolicy.OFF:
        return none
    course = foresee(world.domain, steps)
    grows = not true_size(world.domain).covers(course.largest)
    allocation, error = world.domain.allocation, world.domain.allocation_error
    if world.placement is PlacementPolicy.REPORT:
        return Part(warnings=tuple(_warn(allocation, error, course.largest)) if grows else ()), Part()
    if allocation is None:
        unknown = error or _unasked()
        if grows:
            return Part(blockers=(unknown,)), Part()
        return Part(warnings=(Note.of(unknown),)), Part()
    raised = allocation.size.larger(course.largest)
    before, after = Part(), Part()
    if grows and raised != allocation.size:
        why = f"allocation {allocation.size} to {raised}, before anything grows"
        refused: list[HvsvcError] = []
        if world.server is None:  # a server at work is refused already, whatever the change
            refused += check_settled(world)
        if world.room is not None:
            refused += check_room(world.room, allocation.size, raised)
        before = Part((Step(StepKind.SET_ALLOCATION, Effect.LIVE, why, allocation=raised),), tuple(refused))
    at_last = raised if before.steps else allocation.size
    if at_last != course.last:
        after = Part((settling(f"allocation {at_last} to {course.last}, what the domain then has"),))
    return before, after


def settling(why: str) -> Step:
    """The step that brings the allocation to whatever is true then."""
    return Step(StepKind.SET_ALLOCATION, Effect.LIVE, why)


def check_settled(world: World) -> Iterator[HvsvcError]:
    """Yields why the allocation must be left alone now: Nova itself may be about to move or replace it."""
    server = world.server
    if server is None:
        yield world.server_error or FailedPreconditionError(
            Reason.NOVA_NOT_CONFIGURED,
            "what Nova does with the server is not known, so its allocation is left as it is",
        )
    elif server.task_state is not None or server.status not in _SETTLED_STATUSES:
        yield AbortedError(
            Reason.SERVER_BUSY,
            f"Nova is at work on the server (status {server.status}, task_state {server.task_state}), so its "
            "allocation is left as it is; try again when it has finished",
            {"status": server.status, "taskState": str(server.task_state)},
        )
    elif runs_elsewhere(world):
        yield FailedPreconditionError(
            Reason.SERVER_ELSEWHERE,
            f"Nova runs the server on host {server.hypervisor_hostname}, so its allocation is that host's business",
            {"host": str(server.hypervisor_hostname), "thisHost": world.host.hostname},
        )


def describe_allocation(domain: DomainFacts) -> Iterator[Note]:
    """Says where Placement's allocation differs from the domain, or could not be read."""
    if domain.allocation is not None and domain.allocation.size != true_size(domain):
        yield _differs(domain.allocation.size, true_size(domain))
    elif domain.allocation_error is not None:
        yield Note.of(domain.allocation_error)


def verify_allocation(world: World) -> Iterator[Finding]:
    """Under ENFORCE a change is complete only with the allocation read back equal to the truth."""
    domain = world.domain
    if domain.nova is None or world.placement is not PlacementPolicy.ENFORCE:
        return
    if domain.allocation is None:
        yield Outcome.UNCONFIRMED, Note.of(domain.allocation_error or _unasked())
    elif domain.allocation.size != true_size(domain):
        yield Outcome.PARTIAL, _differs(domain.allocation.size, true_size(domain))


def _warn(allocation: AllocationFacts | None, error: HvsvcError | None, largest: Size) -> Iterator[Note]:
    if allocation is None:
        yield Note.of(error or _unasked())
    elif not allocation.size.covers(largest):
        yield _differs(allocation.size, largest)


def _differs(allocated: Size, truth: Size) -> Note:
    less = not allocated.covers(truth)
    what = "may place other servers on what this one uses" if less else "keeps for it what it does not use"
    return Note(
        Reason.ALLOCATION_DIFFERS,
        f"Placement has {allocated} allocated where {truth} are meant: Nova's scheduler {what}; hvsvc sets it with "
        '[placement] policy = "enforce"',
        {
            "allocatedVcpus": str(allocated.vcpus),
            "allocatedMemoryMib": str(allocated.memory_mib),
            "vcpus": str(truth.vcpus),
            "memoryMib": str(truth.memory_mib),
        },
    )


def _unasked() -> HvsvcError:
    return UnavailableError(
        Reason.PLACEMENT_UNAVAILABLE,
        "the server's allocation in Placement was not read; read the domain again",
    )


def _size(*sizes: Size | None) -> Size:
    result = Size(0, 0)
    for size in sizes:
        result = result if size is None else result.larger(size)
    return result


def _live(domain: DomainFacts) -> Size | None:
    live = domain.live
    if live is None:
        return None
    memory_kib = current_memory_kib(domain) if has_balloon(live) else live.memory_kib
    return Size(live.current_vcpus, _mib(memory_kib or live.current_memory_kib))


def _booted(config: Definition) -> Size:
    """What a domain started from this definition has, once its balloon has settled."""
    memory_kib = config.current_memory_kib if has_balloon(config) else config.memory_kib
    return Size(config.current_vcpus, _mib(memory_kib))


def _flavor(domain: DomainFacts) -> Size | None:
    nova = domain.nova
    return None if nova is None else Size(nova.flavor_vcpus or 0, nova.flavor_memory_mib or 0)


def _mib(memory_kib: int) -> int:
    return -(-memory_kib // MIB_KIB)
