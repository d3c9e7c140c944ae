"""The plan: which steps bring a domain to a target, what each costs, and what forbids it.

A plan is a value made from facts, so a dry run and a diff come free. Where it holds
a reboot, what follows it is a forecast: it is planned afresh from what is true then.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvsvc.domain.definitions_differ import check_same_disks, warn_other_devices
from hvsvc.domain.limits import round_to_mib
from hvsvc.domain.obstacles import check_reboot, check_server, find_tied_resources
from hvsvc.domain.outcome import Note
from hvsvc.domain.plan_allocation import plan_allocation
from hvsvc.domain.plan_ceiling import CeilingPart, plan_ceiling
from hvsvc.domain.plan_config import plan_stored_current
from hvsvc.domain.plan_live import plan_live
from hvsvc.domain.steps import Effect, Part, Step, StepKind, last_xml
from hvsvc.domain.target import Method, RebootMode, Target
from hvsvc.domain.topology import Topology
from hvsvc.domain.world import World
from hvsvc.domain.xml_diff import diff_definitions
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason


@dataclass(frozen=True, slots=True)
class Plan:
    """Steps in order, blockers, warnings. `etag` is that of the definition it was made from."""

    target: Target
    etag: str
    steps: tuple[Step, ...]
    blockers: tuple[HvsvcError, ...] = ()
    warnings: tuple[Note, ...] = ()
    topology: Topology | None = None
    xml_diff: str = ""
    #: what follows the reboot of RebootDomain: the recorded sizes, as far as the stored ceiling allows
    growth: Target | None = None

    @property
    def needs_reboot(self) -> bool:
        """Whether a reboot is among the steps."""
        return any(step.kind is StepKind.REBOOT for step in self.steps)

    @property
    def certain(self) -> tuple[Step, ...]:
        """The steps up to a reboot and the wait after it: what follows is planned afresh then.

        Without a last one that brings the allocation to the truth: that is done however
        the others end.
        """
        for index, step in enumerate(self.steps):
            if step.kind is StepKind.REBOOT:
                return self.steps[: index + 2]
        return self.steps[:-1] if self.steps and self.steps[-1].settles else self.steps


def plan_change(world: World, target: Target, growth: Target | None = None) -> Plan:
    """Plans a target from what is true now; raises nothing, refusals are its blockers.

    :param growth: the sizes that a reboot asked for as such is to be followed by.
    """
    target, notes = _round_sizes(target)
    ceiling = plan_ceiling(world, target)
    reboot = _plan_reboot(world, target, ceiling)
    sizes = growth or target
    live = plan_live(world, sizes, forecast=ceiling.after if reboot.steps else None)
    stored = Part()
    if not ceiling.part.blockers:  # else there is nothing yet to store upon
        stored = plan_stored_current(world, sizes, ceiling.after, live_too=bool(live.steps))
    changes = (*ceiling.part.steps, *reboot.steps, *live.steps, *stored.steps)
    first, last = plan_allocation(world, changes)
    steps = (*first.steps, *changes, *last.steps)
    parts = (ceiling.part, reboot, live, stored, first)  # refusals of the change itself are told first
    blockers = [*_general_blockers(world, changes), *(error for part in parts for error in part.blockers)]
    final_xml = last_xml(steps)
    return Plan(
        target=target,
        etag=world.domain.etag,
        steps=steps,
        blockers=_unique(blockers),
        warnings=(
            *notes,
            *(note for part in parts for note in part.warnings),
            *_general_warnings(world, steps),
        ),
        topology=ceiling.topology,
        xml_diff=diff_definitions(world.domain.config_xml or "", final_xml) if final_xml else "",
        growth=growth,
    )


def _round_sizes(target: Target) -> tuple[Target, tuple[Note, ...]]:
    """Rounds sizes up to whole MiB, as libvirt does at a start, and says so (case MEM-08)."""
    rounded: dict[str, int] = {}
    for name in ("max_memory_kib", "boot_memory_kib", "memory_kib"):
        value: int | None = getattr(target, name)
        if value is not None and round_to_mib(value) != value:
            rounded[name] = round_to_mib(value)
    notes = tuple(
        Note(
            Reason.ROUNDED,
            f"{name} {getattr(target, name)} is rounded up to {used} KiB (whole MiB), as libvirt does at a start",
            {"asked": str(getattr(target, name)), "used": str(used)},
        )
        for name, used in rounded.items()
    )
    return replace(target, **rounded), notes  # type: ignore[arg-type]


def _plan_reboot(world: World, target: Target, ceiling: CeilingPart) -> Part:
    if target.method is Method.REBOOT_DOMAIN:
        why = "asked for"
    elif target.method is Method.RAISE_CEILING and target.reboot is RebootMode.NEVER:
        return Part()
    elif ceiling.waits_for_reboot:
        why = f"{ceiling.why}: the running domain gets it only from a new start"
    else:
        return Part()
    through = "through Nova, soft" if world.domain.nova is not None else "shut down and start"
    blockers: list[HvsvcError] = [*check_reboot(world), *check_same_disks(world.domain)]
    if target.method is Method.SCALE_DOMAIN and target.reboot is RebootMode.NEVER:
        blockers.insert(0, _reboot_required(ceiling))
    return Part(
        steps=(
            Step(StepKind.REBOOT, Effect.REBOOT, f"{why} ({through})"),
            Step(
                StepKind.WAIT_GUEST,
                Effect.LIVE,
                "the guest must be up and its balloon settled before it is judged",
            ),
        ),
        blockers=tuple(blockers),
        warnings=warn_other_devices(world.domain),
    )


def _reboot_required(ceiling: CeilingPart) -> HvsvcError:
    return FailedPreconditionError(
        Reason.REBOOT_REQUIRED,
        f"{ceiling.why}; that takes effect only by a reboot, to which the request does not consent; nothing was "
        f"changed; consent with reboot SOFT (hvctl: --reboot soft), or stay below the ceiling: {ceiling.live_ceiling}",
        {"liveCeiling": ceiling.live_ceiling, "option": "--reboot soft"},
    )


def _general_blockers(world: World, steps: tuple[Step, ...]) -> list[HvsvcError]:
    found: list[HvsvcError] = [*check_server(world)]
    if not steps:
        # what is stored already would not outlast Nova's start either; whatever else Nova is at does not matter
        discards = (error for error in found if error.reason is Reason.NOVA_START_DISCARDS)
        return list(discards) if world.domain.live is None else []
    if any(step.kind not in (StepKind.REBOOT, StepKind.WAIT_GUEST) for step in steps):
        for definition in (world.domain.live, world.domain.config):
            if definition is not None:
                found += find_tied_resources(definition)
    return found


def _general_warnings(world: World, steps: tuple[Step, ...]) -> list[Note]:
    if not steps or world.domain.nova is None:
        return []
    notes: list[Note] = []
    if world.server is None and world.server_error is not None:
        notes.append(
            Note(
                Reason.NOVA_STATE_UNKNOWN,
                f"what Nova is doing with the server is not known: {world.server_error.message}",
            )
        )
    if any(step.kind is StepKind.DEFINE_CONFIG and step.effect is Effect.REBOOT for step in steps):
        notes.append(
            Note(
                Reason.LOST_BY_HARD_REBOOT,
                "Nova makes the definition anew at a hard reboot, stop and start, rebuild, resize, shelve, migration: "
                "only a soft reboot that does not fall back to a hard one keeps this ceiling",
            )
        )
    return notes


def _unique(errors: list[HvsvcError]) -> tuple[HvsvcError, ...]:
    seen: dict[tuple[Reason, str], HvsvcError] = {}
    for error in errors:
        seen.setdefault((error.reason, error.message), error)
    return tuple(seen.values())
