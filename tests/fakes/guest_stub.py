"""Replaces the agent inside a running guest: by a stub that says anything, or by a crippled real one.

The stub is a shell script on the guest's own end of the channel, so libvirt and QEMU are the real ones. It answers
libvirt's handshake, sends for each command the bytes it was told, and an error for the others.
"""

import base64
import json
from typing import Any

import libvirt
import libvirt_qemu

from tests.guest_domains import ask_agent, wait_for

_ERROR = '{"error": {"class": "CommandNotFound", "desc": "no such command"}}'
_STUB = r"""
mkdir -p /run/stub
send() { printf '%s\n' "$1" >&3; }
exec 3<>$PORT
# Without a reader on the host, as at first, reading ends at once.
while :; do read -r line <&3 || { usleep 50000; continue; }
  id=$(printf %s "$line" | sed -n 's/.*"id": *\([0-9]*\).*/\1/p')
  name=$(printf %s "$line" | sed -n 's/.*"execute": *"\([^"]*\)".*/\1/p')
  case $name in
    guest-sync-delimited) printf '\377{"return": %s}\n' $id >&3 ;;
    guest-sync) send "{\"return\": $id}" ;;
    stub-answer)
      of=$(printf %s "$line" | sed -n 's/.*"of": *"\([^"]*\)".*/\1/p')
      printf %s "$line" | sed -n 's/.*"bytes": *"\([^"]*\)".*/\1/p' | base64 -d >/run/stub/$of
      send '{"return": {}}' ;;
    *) printf '%s\n' "$line" >>/run/stub/asked
      if [ -e /run/stub/$name ]; then cat /run/stub/$name >&3; else send '@ERROR@'; fi ;;
  esac
done
""".replace("@ERROR@", _ERROR)
# qemu-ga is started again and again by its parent.
_REPLACE = """
port=$(grep -l org.qemu.guest_agent.0 /sys/class/virtio-ports/*/name); port=${port%/name}; PORT=/dev/${port##*/}
agent=$(pidof qemu-ga); parent=$(awk '/^PPid/{print $2}' /proc/$agent/status)
sleep 0.3; kill $parent; kill $agent; sleep 0.3
"""


class GuestStub:
    """A stub in the place of the agent of a booted guest."""

    def __init__(self, domain: libvirt.virDomain) -> None:
        self._domain = domain
        run_in_guest(domain, _REPLACE + _STUB)
        wait_for(self._answers, "the stub's handshake")

    def answer(self, command: str, said: object) -> None:
        """From now on `said` answers the command: bytes as they are, all else as JSON in `return`."""
        line = said if isinstance(said, bytes) else json.dumps({"return": said}).encode() + b"\n"
        self.ask("stub-answer", of=command, bytes=base64.b64encode(line).decode())

    def ask(self, command: str, **arguments: Any) -> Any:
        """Past everything that is under test."""
        return ask_agent(self._domain, command, **arguments)

    def _answers(self) -> bool:
        try:
            self.ask("stub-answer", of="nothing", bytes="")
        except libvirt.libvirtError:
            return False
        return True


def run_in_guest(domain: libvirt.virDomain, script: str) -> None:
    """Starts a shell script in the guest through its agent, and does not wait for it."""
    request = {"execute": "guest-exec", "arguments": {"path": "/bin/sh", "arg": ["-c", script]}}
    libvirt_qemu.qemuAgentCommand(domain, json.dumps(request), 10, 0)


def block_command(domain: libvirt.virDomain, command: str) -> None:
    """Starts the real agent again, with a command blocked as an administrator would."""
    run_in_guest(domain, f"{_REPLACE} qemu-ga -m virtio-serial -p $PORT -t /run -b {command}")


def stop_agent(domain: libvirt.virDomain) -> None:
    """Makes the real agent hang: connected, and silent."""
    run_in_guest(domain, "sleep 0.3; kill -STOP $(pidof qemu-ga)")
