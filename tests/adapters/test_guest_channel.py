"""Whether there is an agent to talk to, by the XML of a domain."""

from __future__ import annotations

import pytest

from hvsvc.adapters.guest_channel import require_agent
from hvsvc.domain.definition import Definition
from hvsvc.domain.read_definition import parse_definition
from hvsvc.errors import GuestAgentError, Reason


def live(channel: str) -> Definition:
    return parse_definition(
        "<domain type='qemu' id='1'><name>web</name><uuid>6e3a3d0e-3a5b-4a2f-9a53-2f0d3c6b1f10</uuid>"
        f"<memory>1</memory><os><type>hvm</type></os><devices>{channel}</devices></domain>"
    )


def channel(name: str = "org.qemu.guest_agent.0", state: str = "") -> str:
    return f"<channel type='unix'><target type='virtio' name='{name}' {state}/></channel>"


@pytest.mark.parametrize(
    ("devices", "reason"),
    [
        ("", Reason.AGENT_NOT_CONFIGURED),
        (channel("com.redhat.spice.0", "state='connected'"), Reason.AGENT_NOT_CONFIGURED),
        (channel(state="state='disconnected'"), Reason.AGENT_NOT_CONNECTED),
    ],
)
def test_ga_01_not_configured_and_not_connected_are_told_apart(devices: str, reason: Reason) -> None:
    with pytest.raises(GuestAgentError) as caught:
        require_agent(live(devices))
    assert caught.value.reason is reason


@pytest.mark.parametrize("state", ["state='connected'", ""])
def test_an_agent_that_may_be_there_is_asked(state: str) -> None:
    require_agent(live(channel(state=state)))
