"""What hvsvc was asked for, as it is remembered: the yardstick of drift."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum

from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.limits import round_to_mib
from hvsvc.domain.target import Method, Target
from hvsvc.domain.topology import TopologyMode, TopologyPolicy


class ReapplyPolicy(Enum):
    """What hvsvc may do by itself when what was asked for is lost; a reboot is never among it."""

    REPORT = "report"
    CONFIG = "config"
    LIVE = "live"


@dataclass(frozen=True, slots=True)
class DesiredState:
    """The sizes one domain was asked to have, who asked last and when; None where nobody asked.

    Names, Nova host and flavor are those of that time. Sizes in KiB, `flavor_memory_mib`
    in MiB, times in seconds since the epoch.
    """

    uuid: str
    libvirt_name: str
    caller: str
    record_time_s: float
    max_vcpus: int | None = None
    max_memory_kib: int | None = None
    topology: TopologyPolicy = field(default_factory=TopologyPolicy)
    vcpus: int | None = None
    memory_kib: int | None = None
    #: None follows the configured default
    policy: ReapplyPolicy | None = None
    #: "" for a domain that is not Nova's
    server_name: str = ""
    #: whether Nova showed the server to hvsvc's credential: only then does its 404 mean deleted
    seen_in_nova: bool = False
    #: Nova's name of this host; None where the credential may not know
    nova_host: str | None = None
    is_server: bool = False
    flavor: str = ""
    flavor_vcpus: int | None = None
    flavor_memory_mib: int | None = None

    def superseded_by(self, facts: DomainFacts) -> bool:
        """Whether the server has a flavor of other sizes now: it was resized on purpose since.

        A flavor's name is no sign: one can be renamed, and a resize to the same sizes (for
        another disk) loses the ceiling without a wish for another one.
        """
        nova = facts.nova
        if nova is None:
            return False
        return any(
            None not in (then, now) and then != now
            for then, now in (
                (self.flavor_vcpus, nova.flavor_vcpus),
                (self.flavor_memory_mib, nova.flavor_memory_mib),
            )
        )


def record_target(
    known: DesiredState | None,
    target: Target,
    facts: DomainFacts,
    server: ServerFacts | None,
    *,
    caller: str,
    now_s: float,
) -> DesiredState | None:
    """The record after a change to `target` was begun; `known` itself where it asks for nothing to remember.

    What was asked of the running domain or of the stored definition alone is meant to
    end with the next start, or to begin with it: it only ever lowers what is remembered,
    so that nothing is grown back against it.
    """
    if target.method is Method.REBOOT_DOMAIN:
        return known
    if known is not None and known.superseded_by(facts):
        known = replace(
            known, max_vcpus=None, max_memory_kib=None, topology=TopologyPolicy(), vcpus=None, memory_kib=None
        )
    before = known or DesiredState(facts.uuid, facts.libvirt_name, caller, now_s)
    merged = _capped(_merged(before, target))
    if known is None and all(
        value is None for value in (merged.max_vcpus, merged.max_memory_kib, merged.vcpus, merged.memory_kib)
    ):
        return None
    nova = facts.nova
    return replace(
        merged,
        libvirt_name=facts.libvirt_name,
        caller=caller,
        record_time_s=now_s,
        is_server=nova is not None,
        server_name=nova.name if nova is not None else "",
        seen_in_nova=before.seen_in_nova or server is not None,
        nova_host=server.host if server is not None else before.nova_host,
        flavor=nova.flavor if nova is not None else "",
        flavor_vcpus=nova.flavor_vcpus if nova is not None else None,
        flavor_memory_mib=nova.flavor_memory_mib if nova is not None else None,
    )


def _merged(before: DesiredState, target: Target) -> DesiredState:
    match target.method:
        case Method.RAISE_CEILING:
            exact = target.topology.exact
            max_vcpus = exact.product if exact is not None else target.max_vcpus
            return replace(
                before,
                max_vcpus=_or(max_vcpus, before.max_vcpus),
                max_memory_kib=_or(_mib(target.max_memory_kib), before.max_memory_kib),
                topology=target.topology if target.names_topology else before.topology,
                vcpus=_or(target.boot_vcpus, before.vcpus),
                memory_kib=_or(_mib(target.boot_memory_kib), before.memory_kib),
            )
        case Method.SCALE_DOMAIN:
            max_vcpus = _largest(target.max_vcpus, target.vcpus, before.max_vcpus)
            raised = max_vcpus != before.max_vcpus or target.topology.mode is TopologyMode.EXACT
            return replace(
                before,
                max_vcpus=max_vcpus,
                max_memory_kib=_largest(
                    _mib(target.max_memory_kib), _mib(target.memory_kib), before.max_memory_kib
                ),
                topology=target.topology if raised else before.topology,
                vcpus=_or(target.vcpus, before.vcpus),
                memory_kib=_or(_mib(target.memory_kib), before.memory_kib),
            )
        case _ if target.affect.live and target.affect.config:
            # above the recorded ceiling is one that somebody else raised further
            max_vcpus = before.max_vcpus and _largest(before.max_vcpus, target.vcpus)
            max_memory_kib = before.max_memory_kib and _largest(
                before.max_memory_kib, _mib(target.memory_kib)
            )
            kept = max_vcpus == before.max_vcpus or before.topology.mode is not TopologyMode.EXACT
            return replace(
                before,
                max_vcpus=max_vcpus,
                max_memory_kib=max_memory_kib,
                topology=before.topology if kept else TopologyPolicy(),
                vcpus=_or(target.vcpus, before.vcpus),
                memory_kib=_or(_mib(target.memory_kib), before.memory_kib),
            )
        case _:
            return replace(
                before,
                vcpus=_lowered(target.vcpus, before.vcpus),
                memory_kib=_lowered(_mib(target.memory_kib), before.memory_kib),
            )


def _capped(desired: DesiredState) -> DesiredState:
    """A ceiling lowered below what was once asked to be current takes that with it."""
    return replace(
        desired,
        vcpus=_lowered(desired.max_vcpus, desired.vcpus),
        memory_kib=_lowered(desired.max_memory_kib, desired.memory_kib),
    )


def _or(asked: int | None, before: int | None) -> int | None:
    return before if asked is None else asked


def _largest(*values: int | None) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _lowered(asked: int | None, before: int | None) -> int | None:
    return before if before is None or asked is None else min(asked, before)


def _mib(size_kib: int | None) -> int | None:
    return None if size_kib is None else round_to_mib(size_kib)
