"""Follows a guest that nobody rebooted until it is up: it may still boot, also after it reset itself."""

from __future__ import annotations

from hvsvc.domain.boot_sign import up_now, will_report
from hvsvc.domain.facts import DomainFacts
from hvsvc.operations.context import Deadline, Tools


class UpWatch:
    """One wait for a guest, from the domain as read first.

    The bound is longer where the balloon driver is known to report once the guest is up.
    It is up before the agent, and before whatever obeys a power button: a guest that has
    an agent's channel is given `guest_ready_timeout_s` more for its agent after that.
    """

    def __init__(self, tools: Tools, first: DomainFacts) -> None:
        self._tools = tools
        self._first = first
        timeouts = tools.timeouts
        longer_s = timeouts.guest_boot_timeout_s if will_report(first) else 0.0
        self._deadline = Deadline(tools.clock, max(longer_s, timeouts.guest_ready_timeout_s))
        self._for_agent: Deadline | None = None

    @property
    def over(self) -> bool:
        """Whether the bound is reached."""
        return self._deadline.over

    def is_up(self, now: DomainFacts) -> bool:
        """Whether the guest is up, or as far up as it can show; to be asked at each look."""
        if not up_now(self._first, now):
            return False
        live = now.live
        if live is None or live.agent_connected or not live.agent_configured:
            return True
        if self._for_agent is None:
            self._for_agent = Deadline(self._tools.clock, self._tools.timeouts.guest_ready_timeout_s)
        return self._for_agent.over

    async def pause(self) -> None:
        """Sleeps until the next look."""
        await self._deadline.pause(self._tools.timeouts.poll_interval_s)
