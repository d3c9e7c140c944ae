"""The other road to a size: what resizing the server through Nova would mean."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.domain.target import Target

_MIB_KIB = 1024


@dataclass(frozen=True, slots=True)
class ServerSize:
    """A size as flavors state it."""

    vcpus: int
    memory_mib: int


@dataclass(frozen=True, slots=True)
class ResizeRoad:
    """The flavor of just the size, the smallest above it, and what taking one does, in words."""

    exact: Flavor | None
    above: Flavor | None
    consequences: tuple[str, ...]


def wished_size(domain: DomainFacts, target: Target) -> ServerSize:
    """The size that the target asks for, memory in whole MiB.

    A resized server has no room above its current values, so that these count; a
    maximum counts where it is all that is asked for, and what the domain has now where
    nothing is.
    """
    now = domain.definition
    vcpus = target.vcpus or target.max_vcpus or now.current_vcpus
    memory_kib = target.memory_kib or target.max_memory_kib or now.current_memory_kib
    return ServerSize(vcpus, -(-memory_kib // _MIB_KIB))


def rank_flavors(flavors: Iterable[Flavor], server: ServerFacts, size: ServerSize) -> list[Flavor]:
    """The flavors that Nova would take for the size, best first; those of just the size come before all others.

    Nova refuses the flavor that the server has, and a smaller disk unless the root disk
    is a volume (`CannotResizeToSameFlavor`, `FlavorDiskSmallerThanMinDisk` and the
    libvirt driver's own check). Of equal sizes those with the server's extra specs are
    better, then those with the smaller disk.
    """
    present = server.flavor
    fitting = [
        flavor
        for flavor in flavors
        if flavor.vcpus >= size.vcpus
        and flavor.memory_mib >= size.memory_mib
        and (present is None or _may_follow(present, flavor, volume=server.volume_backed))
    ]

    def rank(flavor: Flavor) -> tuple[object, ...]:
        excess = Fraction(flavor.vcpus, size.vcpus) + Fraction(flavor.memory_mib, size.memory_mib)
        differs = present is not None and flavor.extra_specs != present.extra_specs
        return (excess, differs, flavor.disk_gib, flavor.ephemeral_gib, flavor.name, flavor.id)

    return sorted(fitting, key=rank)


def describe_road(
    server: ServerFacts, size: ServerSize, exact: Flavor | None, above: Flavor | None
) -> ResizeRoad:
    """What taking the road does to the server."""
    best = exact or above
    if best is None:
        none = (
            f"{_but_for(server.flavor, size)}no flavor that the server's project may use has {size.vcpus} vCPUs and "
            f"{size.memory_mib} MiB or more and a disk not smaller than now, {_present(server)}; ask the cloud's "
            "administrator for one"
        )
        return ResizeRoad(None, None, (none,))
    return ResizeRoad(exact, above, tuple(_consequences(server, size, exact, best)))


def is_exact(flavor: Flavor, size: ServerSize) -> bool:
    """Whether the flavor has just this size."""
    return (flavor.vcpus, flavor.memory_mib) == (size.vcpus, size.memory_mib)


def _but_for(present: Flavor | None, size: ServerSize) -> str:
    """Names the flavor that the server has, where that would be one for the size."""
    if present is None or present.vcpus < size.vcpus or present.memory_mib < size.memory_mib:
        return ""
    return f"but for {present.name}, which the server has, "


def _may_follow(present: Flavor, flavor: Flavor, *, volume: bool) -> bool:
    if flavor.name == present.name:
        return False
    disk_fits = volume or flavor.disk_gib >= present.disk_gib
    return disk_fits and flavor.ephemeral_gib >= present.ephemeral_gib


def _consequences(server: ServerFacts, size: ServerSize, exact: Flavor | None, best: Flavor) -> Iterable[str]:
    if exact is None:
        yield (
            f"no flavor that the server's project may use has just {size.vcpus} vCPUs and {size.memory_mib} MiB; "
            f"{best.name} is the smallest above"
        )
    yield (
        "the server restarts: Nova shuts it down and starts it with the new flavor; it then stays in VERIFY_RESIZE "
        "until it is confirmed, or reverted, which restarts it again"
    )
    yield (
        f"Nova makes the definition anew from the flavor: maximum and current become {best.vcpus} vCPUs and "
        f"{best.memory_mib} MiB, and a raised ceiling and every edit of the definition are lost"
    )
    yield (
        "the scheduler picks the host: the server may move to another one, and its disk is copied there; where none "
        "has room, the server stays as it is"
    )
    yield (
        "Placement and the project's quota count the new flavor; until the resize is confirmed, Placement counts the "
        "old one too"
    )
    if server.flavor is not None:
        if best.disk_gib > server.flavor.disk_gib and not server.volume_backed:
            yield f"the root disk grows from {server.flavor.disk_gib} to {best.disk_gib} GiB and can never shrink"
        if differences := _spec_differences(server.flavor, best):
            yield f"flavor {best.name} has other extra specs: {differences}"


def _spec_differences(present: Flavor, flavor: Flavor) -> str:
    def word(value: str | None) -> str:
        return "none" if value is None else value

    keys = sorted(present.extra_specs.keys() | flavor.extra_specs.keys())
    pairs = [(key, present.extra_specs.get(key), flavor.extra_specs.get(key)) for key in keys]
    return ", ".join(f"{key} {word(old)} → {word(new)}" for key, old, new in pairs if old != new)


def _present(server: ServerFacts) -> str:
    return f"{server.flavor.disk_gib} GiB" if server.flavor else "which Nova does not tell"
