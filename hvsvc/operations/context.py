"""What the steps of one operation share, and what each of them answers with."""

from __future__ import annotations

from dataclasses import dataclass, field

from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.outcome import Note
from hvsvc.domain.reboot_verdict import judge_since
from hvsvc.domain.target import Target
from hvsvc.errors import HvsvcError
from hvsvc.operations.ports import Clock, Guest, Hypervisor, Journal, Servers
from hvsvc.operations.settings import Timeouts
from hvsvc.operations.surroundings import Surroundings


@dataclass(frozen=True, slots=True)
class Tools:
    """The adapters and bounds that steps work with."""

    around: Surroundings
    journal: Journal
    clock: Clock
    timeouts: Timeouts

    @property
    def hypervisor(self) -> Hypervisor:
        """libvirt."""
        return self.around.hypervisor

    @property
    def guest(self) -> Guest:
        """The guest agent."""
        return self.around.guest

    @property
    def servers(self) -> Servers | None:
        """Nova, where configured."""
        return self.around.servers


@dataclass(slots=True)
class Context:
    """One operation while it runs; steps leave here what later ones need."""

    operation_id: str
    uuid: str
    target: Target
    #: the domain as last read
    domain: DomainFacts
    #: the domain as the plan saw it: what its defines may replace, and nothing else
    planned_from: DomainFacts
    #: the domain was changed
    changed: bool = False
    #: its allocation in Placement was, which alone is nothing that was asked for
    allocated: bool = False
    rebooted: bool = False
    #: the definition whose ceiling the reboot was seen to bring into effect
    brought: Definition | None = None
    #: ids the guest had before vCPUs were added; None where it could not tell
    guest_ids_before: frozenset[int] | None = None
    guest_error: HvsvcError | None = None
    #: the definition replaced by this operation's first define
    previous_xml: str | None = None
    #: when the balloon last moved, seconds since the epoch: older guest statistics say nothing
    balloon_moved_s: float | None = None
    notes: list[Note] = field(default_factory=list)

    def require_brought(self, domain: DomainFacts) -> None:
        """Refuses to go on, or to judge, where what a reboot brought is gone again.

        :raises FailedPreconditionError: CEILING_LOST.
        """
        lost = None if self.brought is None else judge_since(self.brought, domain)
        if lost is not None:
            raise lost


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a step read back; not `confirmed` where it could not see its effect, or only a part."""

    text: str
    confirmed: bool = True


#: between two looks at what is waited for; soon enough for what takes a guest some tens of milliseconds
_SHORTEST_LOOK_S = 0.01


class Deadline:
    """A bound of a wait, and the pace of looking whether it is over."""

    def __init__(self, clock: Clock, timeout_s: float) -> None:
        self._clock = clock
        self._start_s = clock.monotonic_s()
        self._end_s = self._start_s + timeout_s

    @property
    def over(self) -> bool:
        """Whether the bound is reached."""
        return self._clock.monotonic_s() >= self._end_s

    async def pause(self, longest_s: float) -> None:
        """Sleeps until the next look: a twentieth of the time waited so far, at most `longest_s`.

        So what comes soon is seen soon, what takes long is not asked for all the time,
        and no wait lasts much more than a twentieth too long.
        """
        waited_s = self._clock.monotonic_s() - self._start_s
        await self._clock.sleep(min(max(waited_s / 20, _SHORTEST_LOOK_S), longest_s))
