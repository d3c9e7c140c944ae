"""What to do next, in words of hvctl's own options.

The service's message comes first and says what is true; these lines add the command.
"""

from __future__ import annotations

import shlex
from typing import Final

from hvsvc.errors import Reason

_AGENT: Final = "hvctl dominfo DOMAIN shows whether the guest agent answers"
_READ_AGAIN: Final = "look at hvctl dominfo DOMAIN, then repeat the command"
_RAISE: Final = "raise the ceiling first: hvctl raise DOMAIN --max-vcpus N --max-memory SIZE"

BY_REASON: Final[dict[Reason, str]] = {
    Reason.NOTHING_ASKED: "name at least one value; hvctl COMMAND --help lists them",
    Reason.TOPOLOGY_NOT_FACTORABLE: "take the nearest number, or choose what grows: --topology cores, "
    "sockets, or exact factors",
    Reason.AMBIGUOUS_NAME: "name the domain by its uuid; hvctl list -c uuid -c nova.name shows them",
    Reason.REQUEST_ID_REUSED: "leave --request-id out: each command then gets a new one",
    Reason.DOMAIN_NOT_FOUND: "hvctl list shows the domains of this host, hvctl drift also servers that left it "
    "(shelved, moved); --target asks another host",
    Reason.SERVER_NOT_FOUND: "ask Nova as an admin whether it is there: openstack server show DOMAIN",
    Reason.NOTHING_RECORDED: "hvctl drift --all lists what is recorded",
    Reason.OPERATION_NOT_FOUND: "hvctl operations list shows those that are kept",
    Reason.REBOOT_REQUIRED: "add --reboot soft if the guest may be rebooted",
    Reason.ABOVE_LIVE_CEILING: f"{_RAISE} --reboot soft",
    Reason.ABOVE_CONFIG_CEILING: _RAISE,
    Reason.MAXIMUM_BELOW_CURRENT: "ask for a higher maximum, or lower the current value first",
    Reason.LIVE_VCPU_SHRINK: "lower the number of the next start with hvctl setvcpus DOMAIN N --config",
    Reason.DOMAIN_NOT_RUNNING: "start or resume it, or set the next start alone: setvcpus or setmem with --config",
    Reason.CEILING_LOST: "look at hvctl dominfo DOMAIN, make the guest obey a shutdown, then raise again",
    Reason.CEILING_NOT_STORED: "hvctl drift DOMAIN shows what is on record; " + _RAISE + " --reboot soft",
    Reason.DOMAIN_BUSY: "hvctl operations list --running shows what is under way; repeat when it is done",
    Reason.SERVER_BUSY: "wait for Nova to finish, then repeat the command",
    Reason.DEFINITION_CHANGED: f"{_READ_AGAIN} (with the new --etag, if you give one)",
    Reason.ALLOCATION_CHANGED: _READ_AGAIN,
    Reason.ALLOCATION_DIFFERS: "hvctl dominfo DOMAIN shows flavor, allocation and domain side by side",
    Reason.DAEMON_RESTARTED: _READ_AGAIN,
    Reason.CANCELLED: "look at hvctl dominfo DOMAIN for what was done before",
    Reason.SERVER_LOCKED: "unlock the server in Nova: openstack server unlock SERVER",
    Reason.PENDING_REBOOT: "hvctl reboot DOMAIN brings it into effect",
    Reason.GUEST_CPUS_OFFLINE: "hvctl setvcpus DOMAIN N --online all brings every CPU of the guest online",
    Reason.GUEST_CPUS_UNKNOWN: _AGENT,
    Reason.AGENT_NOT_CONFIGURED: "the image needs hw_qemu_guest_agent=yes (OpenStack) for an agent channel",
    Reason.AGENT_NOT_CONNECTED: "start qemu-guest-agent in the guest",
    Reason.AGENT_SILENT: _AGENT,
    Reason.NOT_AUTHENTICATED: "give --tls-cert and --tls-key",
    Reason.NOT_PERMITTED: "ask the operator of the host for the role; the service's configuration grants it",
}

#: in place of the above, where the ceiling that is missing is stored already
_REBOOT_FIRST: Final = "reboot first, when the guest may be: hvctl reboot DOMAIN"

#: for an error that is not hvsvc's own, such as no connection
BY_STATUS: Final[dict[str, str]] = {
    "UNAVAILABLE": "check --target ({target}), and on that host: systemctl status hvsvc",
    "UNAVAILABLE over TLS": "check --target ({target}), --tls-ca (who signed the server's certificate), "
    "--tls-server-name (the name in it), --tls-cert and --tls-key; on that host: systemctl status hvsvc",
    "UNAVAILABLE over TLS without a certificate": "hvsvc takes only clients with a certificate: give --tls-cert and "
    "--tls-key; else check --target ({target}), --tls-ca (who signed the server's certificate), "
    "--tls-server-name (the name in it), and on that host: systemctl status hvsvc",
    "UNAVAILABLE in plaintext": "check --target ({target}); the port may want TLS: give --tls-ca, --tls-cert and "
    "--tls-key instead of --insecure; on that host: systemctl status hvsvc",
    "DEADLINE_EXCEEDED": "try again, with a longer --timeout if the host is busy; target: {target}",
    "PERMISSION_DENIED": "run it as a user that may open the socket, such as a member of its group",
    "UNAUTHENTICATED": "give --tls-cert and --tls-key",
    "UNIMPLEMENTED": "the service at {target} is older than this hvctl, or no hvsvc",
}


def hint_for(
    code: str,
    reason: str,
    target: str,
    *,
    domain: str = "",
    connection: str = "",
    located: bool = False,
    pending: bool = False,
) -> str:
    """The next step for an error, about `domain` where it is known; empty where the message alone must do.

    A `located` target is one that Nova's answer and --cloud-target gave. Over TLS no connection may mean that a
    certificate does not fit, or was not given; gRPC tells these apart in English only, so that the hint goes by the
    `connection`, in the words of `channel.connection_words`. `pending`: the ceiling asked for waits for a reboot.
    """
    try:
        known = Reason(reason)
        stored = pending and known is Reason.ABOVE_LIVE_CEILING
        hint = _REBOOT_FIRST if stored else BY_REASON.get(known, "")
        return hint.replace("DOMAIN", shlex.quote(domain)) if domain else hint
    except ValueError:
        if reason:
            return ""
    hint = BY_STATUS.get(f"{code} {connection}") or BY_STATUS.get(code, "")
    if located:
        hint = hint.replace("check --target", "check --cloud-target")
    return hint.format(target=target)
