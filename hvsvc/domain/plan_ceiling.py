"""The part of a plan that raises (or lowers) the ceiling: one define, in effect after a reboot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvsvc.domain.check_config import ConfigWish, plan_config
from hvsvc.domain.definition import Definition
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.limits import MIB_KIB
from hvsvc.domain.memory import format_kib
from hvsvc.domain.obstacles import check_editable
from hvsvc.domain.outcome import Note
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, Step, StepKind
from hvsvc.domain.target import Method, Target
from hvsvc.domain.topology import Topology
from hvsvc.domain.world import World
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class Stored:
    """A stored definition, as it is or as a planned edit will leave it."""

    xml: str
    definition: Definition


@dataclass(frozen=True, slots=True)
class CeilingPart:
    """The part's steps and refusals, and what the rest of the plan builds on."""

    part: Part
    #: the stored definition after this part; None for a transient domain
    after: Stored | None
    topology: Topology | None = None
    #: the running domain lacks what `after` holds
    waits_for_reboot: bool = False
    why: str = ""
    live_ceiling: str = ""


def plan_ceiling(world: World, target: Target) -> CeilingPart:
    """Plans the define that sets maxima, topology and boot values together (case TOPO-02)."""
    domain = world.domain
    config = domain.config
    if config is None or domain.config_xml is None:
        asks = target.max_vcpus is not None or target.max_memory_kib is not None
        blockers = tuple(check_editable(domain)) if asks or target.method is Method.RAISE_CEILING else ()
        return CeilingPart(Part(blockers=blockers), None)
    stored = Stored(domain.config_xml, config)
    wish = _wish(world, config, target)
    if wish == ConfigWish(topology=wish.topology) or target.method is Method.REBOOT_DOMAIN:
        return CeilingPart(Part(), stored, config.topology)
    planned = plan_config(config, world.host, world.limits, wish)
    part, after = Part(blockers=planned.blockers, warnings=planned.warnings), stored
    if planned.edit is not None:
        part, after = _define(world, stored, wish, planned.blockers, planned.warnings, edit=planned.edit)
    return CeilingPart(
        part,
        after,
        topology=planned.topology or config.topology,
        waits_for_reboot=_waits(domain.live, after.definition, wish),
        why=_why(domain.live or config, wish),
        live_ceiling=_ceiling(domain.live or config),
    )


def _define(
    world: World,
    stored: Stored,
    wish: ConfigWish,
    blockers: tuple[HvsvcError, ...],
    warnings: tuple[Note, ...],
    *,
    edit: Edit,
) -> tuple[Part, Stored]:
    blockers = (*check_editable(world.domain), *blockers)
    xml = None
    if not blockers:
        try:
            xml = edit_definition(stored.xml, edit)
        except HvsvcError as err:
            blockers = (err,)
    step = Step(StepKind.DEFINE_CONFIG, Effect.REBOOT, _why(stored.definition, wish), xml=xml)
    part = Part((step,), blockers, warnings)
    return part, Stored(xml, parse_definition(xml)) if xml is not None else stored


def _wish(world: World, config: Definition, target: Target) -> ConfigWish:
    """What the stored definition should have.

    RaiseCeiling sets what it names; ScaleDomain raises only as far as its values
    need, and where it reboots anyway lowers the boot values with the same define.
    """
    wish = ConfigWish(
        maximum_vcpus=target.max_vcpus,
        memory_kib=target.max_memory_kib,
        current_vcpus=target.boot_vcpus,
        current_memory_kib=target.boot_memory_kib,
        topology=target.topology,
    )
    live = world.domain.live
    if target.method is not Method.SCALE_DOMAIN or live is None:
        return wish
    wish = replace(
        wish,
        maximum_vcpus=_needed(target.max_vcpus, target.vcpus, config.maximum_vcpus, live.maximum_vcpus),
        memory_kib=_needed(target.max_memory_kib, target.memory_kib, config.memory_kib, live.memory_kib),
    )
    if not _waits(live, config, wish):
        return wish
    return replace(
        wish,
        current_vcpus=_lowered(target.vcpus, config.current_vcpus),
        current_memory_kib=_lowered(target.memory_kib, config.current_memory_kib),
    )


def _needed(asked: int | None, current: int | None, config: int, live: int) -> int | None:
    if current is None or (current <= live and current <= config):
        return asked
    return max(asked or 0, current, config)


def _lowered(asked: int | None, config: int) -> int | None:
    return asked if asked is not None and asked < config else None


def _waits(live: Definition | None, after: Definition, wish: ConfigWish) -> bool:
    """Whether the running domain lacks a wished ceiling."""
    if live is None:
        return False
    vcpus = wish.maximum_vcpus is not None and wish.maximum_vcpus != live.maximum_vcpus
    memory = wish.memory_kib is not None and abs(wish.memory_kib - live.memory_kib) >= MIB_KIB
    topology = wish.maximum_vcpus is not None and after.topology != live.topology
    return vcpus or memory or topology


def _why(now: Definition, wish: ConfigWish) -> str:
    changes = []
    if wish.maximum_vcpus is not None:
        changes.append(f"maximum vCPUs {now.maximum_vcpus} to {wish.maximum_vcpus}")
    if wish.memory_kib is not None:
        changes.append(f"maximum memory {format_kib(now.memory_kib)} to {format_kib(wish.memory_kib)}")
    if wish.current_vcpus is not None:
        changes.append(f"boot vCPUs {now.current_vcpus} to {wish.current_vcpus}")
    if wish.current_memory_kib is not None:
        changes.append(
            f"boot memory {format_kib(now.current_memory_kib)} to {format_kib(wish.current_memory_kib)}"
        )
    return ", ".join(changes) or "topology"


def _ceiling(now: Definition) -> str:
    return f"{now.maximum_vcpus} vCPUs and {format_kib(now.memory_kib)}"
