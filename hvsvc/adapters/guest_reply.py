"""Reads the guest agent's replies, which a guest can fill with anything (cases GA-03, GA-04, CPU-15).

Formats: https://qemu-project.gitlab.io/qemu/interop/qemu-ga-ref.html. Nothing is repaired:
a reply that is not what the reference says is refused whole.
"""

from __future__ import annotations

import json

from hvsvc.domain.facts import GuestCpu, GuestCpus
from hvsvc.errors import GuestAgentError, Reason

#: some 20,000 CPUs; a real reply has some 60 bytes a CPU
_MOST_CHARACTERS = 1 << 20
#: above what Linux and QEMU can have
_MOST_CPUS = 8192
_MOST_COMMANDS = 4096


def parse_cpus(reply: str) -> GuestCpus:
    """The CPUs of a guest-get-vcpus reply, by id.

    :raises GuestAgentError: AGENT_REPLY_INVALID for anything but a list of distinct CPUs
        of which one at least is online.
    """
    command = "guest-get-vcpus"
    entries = _parse_list(reply, command, _MOST_CPUS)
    cpus: dict[int, GuestCpu] = {}
    for entry in entries:
        if not isinstance(entry, dict):
            raise _invalid(command, "an entry is no object")
        number, online = entry.get("logical-id"), entry.get("online")
        can_offline = entry.get("can-offline")
        if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number < _MOST_CPUS:
            raise _invalid(command, f"a logical-id is no number of 0 to {_MOST_CPUS - 1}")
        if not isinstance(online, bool) or not isinstance(can_offline, bool | None):
            raise _invalid(command, f"CPU {number} has no usable state")
        if number in cpus:
            raise _invalid(command, f"CPU {number} is listed twice")
        cpus[number] = GuestCpu(number, online, can_offline)
    if not any(cpu.online for cpu in cpus.values()):
        raise _invalid(command, "no CPU is online, yet one answered")
    return GuestCpus(tuple(cpus[number] for number in sorted(cpus)))


def parse_processed(reply: str, asked: int) -> int:
    """How many CPUs a guest-set-vcpus reply says were set: 1 to `asked`.

    :raises GuestAgentError: AGENT_REPLY_INVALID.
    """
    number = _parse_return(reply, "guest-set-vcpus")
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= asked:
        raise _invalid("guest-set-vcpus", f"it does not say how many of {asked} CPUs were set")
    return number


def parse_frozen(reply: str) -> bool:
    """Whether a guest-fsfreeze-status reply says that file systems are frozen.

    :raises GuestAgentError: AGENT_REPLY_INVALID.
    """
    status = _parse_return(reply, "guest-fsfreeze-status")
    if status not in ("frozen", "thawed"):
        raise _invalid("guest-fsfreeze-status", "it is neither frozen nor thawed")
    return bool(status == "frozen")


def parse_enabled_commands(reply: str) -> frozenset[str]:
    """The commands that a guest-info reply lists as enabled.

    :raises GuestAgentError: AGENT_REPLY_INVALID.
    """
    information = _parse_return(reply, "guest-info")
    commands = information.get("supported_commands") if isinstance(information, dict) else None
    if not isinstance(commands, list) or len(commands) > _MOST_COMMANDS:
        raise _invalid("guest-info", "it lists no commands")
    enabled = set()
    for command in commands:
        if not isinstance(command, dict) or not isinstance(command.get("name"), str):
            raise _invalid("guest-info", "a command has no name")
        if command.get("enabled") is True:
            enabled.add(command["name"])
    return frozenset(enabled)


def _parse_list(reply: str, command: str, most: int) -> list[object]:
    found = _parse_return(reply, command)
    if not isinstance(found, list) or len(found) > most:
        raise _invalid(command, f"it is no list of at most {most} entries")
    return found


def _parse_return(reply: str, command: str) -> object:
    if len(reply) > _MOST_CHARACTERS:
        raise _invalid(command, f"it has {len(reply)} characters")
    try:
        parsed = json.loads(reply)
    except (ValueError, RecursionError) as err:
        raise _invalid(command, "it is no JSON") from err
    if not isinstance(parsed, dict) or "return" not in parsed:
        raise _invalid(command, "it returns nothing")
    return parsed["return"]


def _invalid(command: str, why: str) -> GuestAgentError:
    return GuestAgentError(
        Reason.AGENT_REPLY_INVALID,
        f"The guest agent's reply to {command} is invalid: {why}. Check qemu-guest-agent in the guest.",
        {"command": command},
    )
