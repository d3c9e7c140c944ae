"""The part of a plan that raises (or lowers) the ceiling: one define, in effect after a reboot."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hvsvc.domain.ceiling import format_ceiling
from hvsvc.domain.check_config import ConfigWish, plan_config
from hvsvc.domain.definition import Definition
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.limits import MIB_KIB, round_to_mib, same_at_start
from hvsvc.domain.memory import format_kib
from hvsvc.domain.obstacles import check_editable, find_tied_resources
from hvsvc.domain.outcome import Note
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, Part, Step, StepKind
from hvsvc.domain.target import Method, Target
from hvsvc.domain.topology import Topology, TopologyMode
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
    exact = wish.topology.mode is TopologyMode.EXACT
    if wish == ConfigWish(topology=wish.topology) and not exact:
        return CeilingPart(Part(), stored, config.topology)
    planned = plan_config(config, world.host, world.limits, wish)
    part, after = Part(blockers=planned.blockers, warnings=planned.warnings), stored
    if planned.edit is not None:
        part, after = _define(world, stored, wish, planned.blockers, planned.warnings, edit=planned.edit)
    return CeilingPart(
        part,
        after,
        topology=planned.topology or config.topology,
        waits_for_reboot=_waits(domain.live, after.definition, wish, target.method),
        why=_why(domain.live or config, wish),
        live_ceiling=format_ceiling(domain.live or config),
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
    # what is tied is refused as such, not by an edit that fails on it
    blockers = (*check_editable(world.domain), *find_tied_resources(stored.definition), *blockers)
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

    RaiseCeiling sets what it names, with a topology alone the factors of the same
    maximum. ScaleDomain raises only as far as its values need, never lowers, and where
    it reboots anyway lowers the boot values with the same define; of a domain that is
    off, all is stored with one define.
    """
    if target.method not in (Method.RAISE_CEILING, Method.SCALE_DOMAIN):
        return ConfigWish()
    wish = ConfigWish(
        maximum_vcpus=target.max_vcpus,
        memory_kib=target.max_memory_kib,
        current_vcpus=target.boot_vcpus,
        current_memory_kib=target.boot_memory_kib,
        topology=target.topology,
    )
    if target.method is Method.RAISE_CEILING:
        if target.names_topology and wish.maximum_vcpus is None:
            return replace(wish, maximum_vcpus=config.maximum_vcpus)
        return wish
    live = world.domain.live
    now = live or config
    stored_kib = round_to_mib(config.memory_kib)
    wish = replace(
        wish,
        maximum_vcpus=_needed(target.max_vcpus, target.vcpus, config.maximum_vcpus, now.maximum_vcpus),
        memory_kib=_needed(
            target.max_memory_kib, target.memory_kib, stored_kib, round_to_mib(now.memory_kib)
        ),
    )
    if live is None:
        return replace(wish, current_vcpus=target.vcpus, current_memory_kib=target.memory_kib)
    if not _waits(live, config, wish, target.method):
        return wish
    return replace(
        wish,
        current_vcpus=_lowered(target.vcpus, config.current_vcpus),
        current_memory_kib=_lowered(target.memory_kib, config.current_memory_kib),
    )


def _needed(maximum: int | None, current: int | None, config: int, live: int) -> int | None:
    """The stored maximum that a least maximum and a current value need; None where both have it."""
    needed = max(maximum or 0, current or 0)
    return None if needed <= min(config, live) else max(needed, config)


def _lowered(asked: int | None, config: int) -> int | None:
    return asked if asked is not None and asked < config else None


def _waits(live: Definition | None, after: Definition, wish: ConfigWish, method: Method) -> bool:
    """Whether the running domain lacks a wished ceiling; more than wished is enough for ScaleDomain."""
    if live is None:
        return False
    exact = wish.topology.exact
    if exact is not None and exact != live.topology:
        return True
    vcpus = 0 if wish.maximum_vcpus is None else wish.maximum_vcpus - live.maximum_vcpus
    memory_kib = 0 if wish.memory_kib is None else wish.memory_kib - live.memory_kib
    if method is Method.SCALE_DOMAIN:
        return vcpus > 0 or memory_kib >= MIB_KIB
    topology = wish.maximum_vcpus is not None and after.topology != live.topology
    return vcpus != 0 or abs(memory_kib) >= MIB_KIB or topology


def _why(now: Definition, wish: ConfigWish) -> str:
    changes = []
    if wish.maximum_vcpus not in (None, now.maximum_vcpus):
        changes.append(f"maximum vCPUs {now.maximum_vcpus} to {wish.maximum_vcpus}")
    if wish.memory_kib is not None and not same_at_start(wish.memory_kib, now.memory_kib):
        changes.append(f"maximum memory {format_kib(now.memory_kib)} to {format_kib(wish.memory_kib)}")
    if wish.current_vcpus not in (None, now.current_vcpus):
        changes.append(f"boot vCPUs {now.current_vcpus} to {wish.current_vcpus}")
    if wish.current_memory_kib is not None:
        changes.append(
            f"boot memory {format_kib(now.current_memory_kib)} to {format_kib(wish.current_memory_kib)}"
        )
    return ", ".join(changes) or "another topology"
