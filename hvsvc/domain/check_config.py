"""Works out one edit of the stored definition, and what forbids it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hvsvc.domain.check_live import has_balloon
from hvsvc.domain.definition import Definition
from hvsvc.domain.edit_definition import Edit
from hvsvc.domain.facts import HostFacts
from hvsvc.domain.limits import (
    HOTPLUG_ARCHITECTURES,
    HostLimits,
    check_max_memory,
    check_max_vcpus,
    round_to_mib,
    same_at_start,
)
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy, factor
from hvsvc.errors import (
    FailedPreconditionError,
    HvsvcError,
    InvalidArgumentError,
    Reason,
    UnimplementedError,
)


@dataclass(frozen=True, slots=True)
class ConfigWish:
    """The values the stored definition should have; None leaves one. Sizes in KiB, whole MiB."""

    maximum_vcpus: int | None = None
    memory_kib: int | None = None
    current_vcpus: int | None = None
    current_memory_kib: int | None = None
    topology: TopologyPolicy = field(default_factory=TopologyPolicy)


@dataclass(frozen=True, slots=True)
class ConfigPlan:
    """The edit that brings a definition there, None where it is there; its blockers and warnings."""

    edit: Edit | None
    topology: Topology | None
    blockers: tuple[HvsvcError, ...]
    warnings: tuple[Note, ...]


def plan_config(config: Definition, host: HostFacts, limits: HostLimits, wish: ConfigWish) -> ConfigPlan:
    """Plans one edit of the stored definition.

    The topology is judged only where a maximum or exact factors are asked (case TOPO-06:
    a memory-only change must not touch it), and against the maximum, never against
    current (case TOPO-01). Factors that fit already stay as they are.
    """
    blockers: list[HvsvcError] = []
    warnings: list[Note] = []
    maximum = wish.maximum_vcpus if wish.maximum_vcpus is not None else config.maximum_vcpus
    current = wish.current_vcpus if wish.current_vcpus is not None else config.current_vcpus
    topology: Topology | None = None
    if wish.maximum_vcpus is not None or wish.topology.mode is TopologyMode.EXACT:
        try:
            topology = factor(config.topology, maximum, wish.topology)
        except HvsvcError as err:
            blockers.append(err)
        warnings += _warn_repair(config, topology)
    if maximum != config.maximum_vcpus:
        blockers += check_max_vcpus(config, host, limits, maximum, wish.topology)
    if current > maximum:
        asked = wish.current_vcpus is not None
        blockers.append(_current_above(_VCPUS, current, maximum, asked=asked))
    elif maximum > current and (maximum, current) != (config.maximum_vcpus, config.current_vcpus):
        blockers += _check_hotplug(config, current, maximum)
    blockers += _check_memory(config, host, limits, wish)
    memory_kib = _changed(wish.memory_kib, config.memory_kib)
    current_memory_kib = _changed(wish.current_memory_kib, config.current_memory_kib)
    if current_memory_kib is not None:
        # a maximum that is no whole MiB takes a current value rounded up to it
        current_memory_kib = min(current_memory_kib, memory_kib or config.memory_kib)
    edit = Edit(
        maximum_vcpus=maximum if maximum != config.maximum_vcpus else None,
        topology=topology if topology != config.topology else None,
        current_vcpus=current if current != config.current_vcpus else None,
        memory_kib=memory_kib,
        current_memory_kib=current_memory_kib,
    )
    return ConfigPlan(
        edit=edit if edit != Edit() else None,
        topology=topology,
        blockers=tuple(blockers),
        warnings=tuple(warnings),
    )


def _changed(wish: int | None, value: int) -> int | None:
    return wish if wish is not None and not same_at_start(wish, value) else None


def _check_memory(
    config: Definition, host: HostFacts, limits: HostLimits, wish: ConfigWish
) -> list[HvsvcError]:
    maximum = wish.memory_kib if wish.memory_kib is not None else config.memory_kib
    current = wish.current_memory_kib if wish.current_memory_kib is not None else config.current_memory_kib
    found: list[HvsvcError] = []
    raised = wish.memory_kib is not None and not same_at_start(maximum, config.memory_kib)
    if raised and maximum > config.memory_kib:
        found += check_max_memory(host, limits, maximum)
    named = raised or wish.current_memory_kib is not None
    if named and not has_balloon(config) and round_to_mib(current) < round_to_mib(maximum):
        found.append(
            FailedPreconditionError(
                Reason.NO_BALLOON,
                f"the domain has no memory balloon, so the guest would have the whole maximum of "
                f"{format_kib(maximum)} after the reboot, not {format_kib(current)}; ask for the same boot "
                "memory as maximum, or give the domain a balloon",
                {"askedKib": maximum, "currentKib": current},
            )
        )
    lowest = min(limits.memory_floor_reserve_kib, config.current_memory_kib)
    if wish.current_memory_kib is not None and current < lowest:
        found.append(
            FailedPreconditionError(
                Reason.BELOW_MEMORY_FLOOR,
                f"{format_kib(current)} of memory for the next start were asked; with less than "
                f"{format_kib(lowest)} the guest would starve while it boots; ask for at least "
                f"{format_kib(lowest)} ([limits] memory_floor_reserve_kib)",
                {"askedKib": current, "lowestKib": lowest},
            )
        )
    if round_to_mib(current) > round_to_mib(maximum):
        asked = wish.current_memory_kib is not None
        found.append(_current_above(_MEMORY, current, maximum, asked=asked))
    return found


@dataclass(frozen=True, slots=True)
class _Words:
    """How a refusal speaks of one of the two resources."""

    what: str
    maximum_field: str
    current_field: str
    option: str
    show: Callable[[int], str]
    suffix: str


_VCPUS = _Words("vCPUs", "max_vcpus", "boot_vcpus", "--boot-vcpus", str, "")
_MEMORY = _Words("memory", "max_memory_kib", "boot_memory_kib", "--boot-memory", format_kib, "Kib")


def _current_above(words: _Words, current: int, maximum: int, *, asked: bool) -> HvsvcError:
    # libvirt would lower current silently (cases TOPO-08, XML-10): refuse, never clamp
    low, high = words.show(maximum), words.show(current)
    metadata = {f"maximum{words.suffix}": maximum, f"current{words.suffix}": current}
    if asked:
        return InvalidArgumentError(
            Reason.MAXIMUM_BELOW_CURRENT,
            f"{words.what} of {high} for the next start were asked, above the maximum of {low}; ask for at most "
            f"{low}, or raise the maximum in the same request",
            {**metadata, f"highest{words.suffix}": maximum},
            field=words.current_field,
        )
    return InvalidArgumentError(
        Reason.MAXIMUM_BELOW_CURRENT,
        f"a maximum of {low} {words.what} is below the stored current value of {high}; ask for a maximum of at "
        f"least {high}, or lower both in one request ({words.option})",
        {**metadata, f"lowest{words.suffix}": current},
        field=words.maximum_field,
    )


def _check_hotplug(config: Definition, current: int, maximum: int) -> list[HvsvcError]:
    if config.arch not in HOTPLUG_ARCHITECTURES:
        return [
            UnimplementedError(
                Reason.NO_VCPU_HOTPLUG,
                f"QEMU cannot add vCPUs to a running {config.arch} domain, so a maximum of {maximum} above the current "
                f"{current} would not start; ask for the same number of both",
                {"arch": config.arch, "maximum": maximum, "current": current},
            )
        ]
    if config.arch in ("x86_64", "i686") and not config.acpi:
        return [
            FailedPreconditionError(
                Reason.NO_ACPI,
                f"the domain has no ACPI, without which its guest cannot be given vCPUs while it runs; a maximum of "
                f"{maximum} above the current {current} is of no use; enable the acpi feature first",
                {"maximum": maximum, "current": current},
            )
        ]
    return []


def _warn_repair(config: Definition, topology: Topology | None) -> list[Note]:
    old = config.topology
    if old is None or topology is None or old.product == config.maximum_vcpus:
        return []
    return [
        Note(
            Reason.TOPOLOGY_REPAIRED,
            f"the stored topology {old} stands for {old.product} vCPUs, not for the maximum of "
            f"{config.maximum_vcpus}; it is replaced by {topology}",
            {"old": str(old), "new": str(topology)},
        )
    ]
