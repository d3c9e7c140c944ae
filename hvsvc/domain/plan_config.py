"""The part of a plan that stores current values: what the next start gives (case CPU-10)."""

from __future__ import annotations

from collections.abc import Iterator

from hvsvc.domain.check_config import ConfigWish, plan_config
from hvsvc.domain.definition import Definition
from hvsvc.domain.edit_definition import edit_definition
from hvsvc.domain.limits import round_to_mib, same_at_start
from hvsvc.domain.memory import format_kib
from hvsvc.domain.obstacles import check_editable, find_tied_resources
from hvsvc.domain.plan_ceiling import Stored
from hvsvc.domain.steps import Effect, Part, Step, StepKind
from hvsvc.domain.target import Target
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, HvsvcError, Reason


def plan_stored_current(world: World, target: Target, stored: Stored | None, *, live_too: bool) -> Part:
    """Plans the define of current values, after the live steps, on top of `stored`."""
    if not target.affect.config or (target.vcpus is None and target.memory_kib is None):
        return Part()
    if stored is None:
        return Part(blockers=tuple(check_editable(world.domain)))
    wish = ConfigWish(current_vcpus=target.vcpus, current_memory_kib=target.memory_kib)
    blockers: list[HvsvcError] = [*_check_ceiling(stored.definition, target)]
    planned = None
    if not blockers:
        planned = plan_config(stored.definition, world.host, world.limits, wish)
        blockers += planned.blockers
        if planned.edit is None:
            return Part(blockers=tuple(blockers))
        blockers += check_editable(world.domain)
        blockers += find_tied_resources(stored.definition)
    xml = None
    if planned is not None and planned.edit is not None and not blockers:
        try:
            xml = edit_definition(stored.xml, planned.edit)
        except HvsvcError as err:
            blockers.append(err)
    effect = Effect.LIVE if target.affect.live or world.domain.live is None else Effect.REBOOT
    step = Step(StepKind.DEFINE_CONFIG, effect, _why(stored.definition, target, live_too=live_too), xml=xml)
    return Part((step,), tuple(blockers))


def _check_ceiling(config: Definition, target: Target) -> Iterator[HvsvcError]:
    if target.vcpus is not None and target.vcpus > config.maximum_vcpus:
        yield _above(f"{target.vcpus} vCPUs", str(config.maximum_vcpus))
    if target.memory_kib is not None and target.memory_kib > round_to_mib(config.memory_kib):
        yield _above(format_kib(target.memory_kib), format_kib(config.memory_kib))


def _above(asked: str, ceiling: str) -> HvsvcError:
    return FailedPreconditionError(
        Reason.ABOVE_CONFIG_CEILING,
        f"{asked} were asked; the stored definition's ceiling is {ceiling}; raise the ceiling first",
        {"asked": asked, "ceiling": ceiling},
    )


def _why(config: Definition, target: Target, *, live_too: bool) -> str:
    values = []
    if target.vcpus is not None and target.vcpus != config.current_vcpus:
        values.append(f"vCPUs {config.current_vcpus} to {target.vcpus}")
    if target.memory_kib is not None and not same_at_start(target.memory_kib, config.current_memory_kib):
        values.append(f"memory {format_kib(config.current_memory_kib)} to {format_kib(target.memory_kib)}")
    kept = ", so that the next start keeps it" if live_too else ""
    return f"stored {' and '.join(values)}{kept}"
