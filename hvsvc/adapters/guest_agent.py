"""The guest agent, through libvirt (https://libvirt.org/html/libvirt-libvirt-qemu.html).

Each command carries its own timeout. libvirt's calls for the guest's CPUs
(`virDomainGetGuestVcpus`) cannot: their only bound is a setting of the domain that every
other client, Nova's freezes among them, would get too, and without it an agent that answers
the handshake and then no more would hold a worker of libvirtd for ever. The price: libvirt
marks the domain as tainted, `custom-ga-command`, once each run.

An agent's refusal reaches us as libvirt's code 1 with English text (113 from libvirt 11.2
on). The text is not read: the agent is asked what is wrong instead (cases GA-02, GA-06).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeVar

import libvirt
import libvirt_qemu

from hvsvc.adapters.guest_channel import require_agent
from hvsvc.adapters.guest_reply import parse_cpus, parse_enabled_commands, parse_frozen, parse_processed
from hvsvc.adapters.libvirt_facts import XmlReader
from hvsvc.adapters.libvirt_link import Link
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.domain.facts import GuestCpus
from hvsvc.errors import (
    AbortedError,
    DeadlineError,
    GuestAgentError,
    HvsvcError,
    NotFoundError,
    Reason,
    UnavailableError,
)

#: libvirt's own bound for the handshake before each command
_HANDSHAKE_S = 5
_INTERNAL_ERROR, _AGENT_COMMAND_FAILED = 1, 113
#: codes that mean silence: AGENT_UNRESPONSIVE, AGENT_UNSYNCED, AGENT_COMMAND_TIMEOUT
_SILENT_CODES = frozenset({86, 97, 112})
#: an agent that says any of these is alive
_ALIVE = frozenset(
    {Reason.AGENT_COMMAND_MISSING, Reason.AGENT_FROZEN, Reason.AGENT_REFUSED, Reason.AGENT_REPLY_INVALID}
)

T = TypeVar("T")


class GuestAgent:
    """The agents of all guests; fulfils operations' `Guest`.

    It has connections of its own, so a hanging agent holds up neither reads nor changes,
    and one command a guest at a time, so it holds up no other guest (case GA-07).
    """

    def __init__(self, settings: LibvirtSettings) -> None:
        self._timeout_s = settings.agent_timeout_s
        self._link = Link(settings, "guest")
        self._xml = XmlReader()

    async def close(self) -> None:
        """Closes the connections; a command that hangs is left to the end of the process."""
        self._link.close()

    async def read_cpus(self, uuid: str) -> GuestCpus:
        """Lists the guest's CPUs.

        :raises GuestAgentError: the reason says why there is no list.
        """
        return await self._ask(uuid, "guest-get-vcpus", parse_cpus)

    async def set_online(self, uuid: str, cpu_ids: frozenset[int]) -> None:
        """Brings these CPUs online; CPU 0, which always is, is left alone.

        The agent works through the list and stops at the first CPU that fails: it refuses
        if that is the first one, and else says how far it came. So a return without error
        means a part at least: read again.

        :raises GuestAgentError: AGENT_REFUSED when not even the first one could be set.
        """
        wanted = sorted(cpu_ids - {0})
        if wanted:
            await self._ask(
                uuid,
                "guest-set-vcpus",
                lambda reply: parse_processed(reply, len(wanted)),
                {"vcpus": [{"logical-id": number, "online": True} for number in wanted]},
            )

    async def ping(self, uuid: str) -> None:
        """Asks for a sign of life; an agent that refuses, frozen or not, is alive.

        :raises GuestAgentError: AGENT_NOT_CONFIGURED, AGENT_NOT_CONNECTED, AGENT_SILENT.
        """
        try:
            await self._ask(uuid, "guest-ping", lambda _reply: None)
        except GuestAgentError as err:
            if err.reason not in _ALIVE:
                raise

    async def _ask(
        self,
        uuid: str,
        command: str,
        parse: Callable[[str], T],
        arguments: Mapping[str, object] | None = None,
    ) -> T:
        def ask(connection: libvirt.virConnect) -> T:
            domain = connection.lookupByUUIDString(uuid)
            self._require_agent(domain)
            try:
                reply = self._execute(domain, command, arguments)
            except libvirt.libvirtError as err:
                if (explained := self._explain(domain, command, err)) is None:
                    raise
                raise explained from err
            return parse(reply)

        try:
            return await self._link.call(
                ask,
                f"ask the agent of domain {uuid} for {command}",
                timeout_s=self._timeout_s + _HANDSHAKE_S + 1,
                refusal=Reason.AGENT_REFUSED,
                domain=uuid,
            )
        except (GuestAgentError, NotFoundError, UnavailableError):
            raise
        except (AbortedError, DeadlineError) as err:  # another client's command holds the agent, or ours does
            raise _silent(command, uuid) from err
        except HvsvcError as err:
            raise GuestAgentError(
                Reason.AGENT_REFUSED, err.message, {**err.metadata, "command": command}
            ) from err

    # ---- in native threads

    def _require_agent(self, domain: libvirt.virDomain) -> None:
        read = self._xml.read(domain.XMLDesc(0))
        if read.id is None:
            raise GuestAgentError(
                Reason.AGENT_NOT_CONNECTED, f"Domain {domain.name()} is not running, so no agent can answer."
            )
        require_agent(read.definition)

    def _execute(
        self, domain: libvirt.virDomain, command: str, arguments: Mapping[str, object] | None = None
    ) -> str:
        request = json.dumps({"execute": command} | ({"arguments": arguments} if arguments else {}))
        return str(libvirt_qemu.qemuAgentCommand(domain, request, self._timeout_s, 0))

    def _explain(
        self, domain: libvirt.virDomain, command: str, error: libvirt.libvirtError
    ) -> GuestAgentError | None:
        code = error.get_error_code()
        if code in _SILENT_CODES:
            self._require_agent(domain)  # it may have gone away just now
            return _silent(command, domain.UUIDString())
        if code == libvirt.VIR_ERR_OPERATION_INVALID:
            self._require_agent(domain)  # so may the domain
        if code not in {_INTERNAL_ERROR, _AGENT_COMMAND_FAILED}:
            return None
        if self._is_frozen(domain):
            return GuestAgentError(
                Reason.AGENT_FROZEN,
                f"The guest agent did not run {command}: its file systems are frozen, as for a backup. "
                "Retry when they are thawed.",
                {"command": command},
            )
        if not self._has_command(domain, command):
            return GuestAgentError(
                Reason.AGENT_COMMAND_MISSING,
                f"The guest agent does not have {command}, or it is blocked in its configuration. "
                "Allow it or update qemu-guest-agent in the guest.",
                {"command": command},
            )
        return GuestAgentError(
            Reason.AGENT_REFUSED,
            f"The guest agent refused {command}: {error.get_error_message()}",
            {"command": command},
        )

    def _is_frozen(self, domain: libvirt.virDomain) -> bool:
        try:
            return parse_frozen(self._execute(domain, "guest-fsfreeze-status"))
        except libvirt.libvirtError as err:
            _require_answer(err)
            return False
        except GuestAgentError:
            return False

    def _has_command(self, domain: libvirt.virDomain, command: str) -> bool:
        try:
            return command in parse_enabled_commands(self._execute(domain, "guest-info"))
        except libvirt.libvirtError as err:
            _require_answer(err)
            return True
        except GuestAgentError:
            return True


def _require_answer(error: libvirt.libvirtError) -> None:
    """Lets a refusal pass, which leaves a question open; raises where the agent fell silent."""
    if error.get_error_code() not in {_INTERNAL_ERROR, _AGENT_COMMAND_FAILED}:
        raise error


def _silent(command: str, uuid: str) -> GuestAgentError:
    return GuestAgentError(
        Reason.AGENT_SILENT,
        f"The agent of domain {uuid} is connected and did not answer {command} in time. "
        "Check that the guest is not hanging and that nobody else keeps its agent busy.",
        {"command": command},
    )
