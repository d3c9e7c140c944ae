"""Whether a domain has a guest agent to talk to, by its XML: libvirt's error codes do not tell (case GA-01)."""

from __future__ import annotations

from hvsvc.domain.definition import Definition
from hvsvc.errors import GuestAgentError, Reason


def require_agent(live: Definition) -> None:
    """Refuses a domain whose agent cannot answer.

    :param live: the definition of the running domain, where libvirt keeps the channel's state.
    :raises GuestAgentError: AGENT_NOT_CONFIGURED, AGENT_NOT_CONNECTED.
    """
    if not live.agent_configured:
        raise GuestAgentError(
            Reason.AGENT_NOT_CONFIGURED,
            f"Domain {live.name} has no channel for the guest agent. "
            "For a Nova server set hw_qemu_guest_agent=yes on its image; else add the channel to the definition.",
        )
    if live.agent_connected is False:
        raise GuestAgentError(
            Reason.AGENT_NOT_CONNECTED,
            f"No guest agent is connected in domain {live.name}. Start qemu-guest-agent in the guest.",
        )
