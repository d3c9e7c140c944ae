"""`scale --via resize`: resizes the server through Nova, looks whether it is what it should be, confirms or reverts.

The road that Nova itself offers: it restarts the server and makes the definition anew
from a flavor. hvctl goes it with the caller's own credential; hvsvc chooses the flavor
and says what is true on the host.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

import click

from hvsvc.errors import Reason
from hvsvc.hvctl.cloud import Cloud, CloudError, CloudServer
from hvsvc.hvctl.document import Document
from hvsvc.hvctl.failure import Failure
from hvsvc.hvctl.resize_verdict import Size, find_differences, find_guest_differences
from hvsvc.hvctl.terminal import safe

#: a guest boots within this, or never
VERIFY_TIMEOUT_S: Final = 180.0
#: for the agent of a guest that did not answer before either
SILENT_TIMEOUT_S: Final = 30.0
#: how long a host that has no hvsvc is looked for
UNREACHABLE_TIMEOUT_S: Final = 20.0
#: to confirm or to revert, both of which must be tried even where the wait is over
END_TIMEOUT_S: Final = 300.0
_POLL_S: Final = 0.5
_VERIFY_WHY: Final = "whether libvirt and the guest have the size, before it is confirmed"
_CONFIRM_WHY: Final = "it is as the flavor says"


class ResizeError(Exception):
    """The resize ended without the size; `failure` says why and what is true now."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(slots=True)
class Resize:
    """One resize.

    :param read_domain: the domain as hvsvc of the server's host reports it, guest
        included; None where no hvsvc can be asked there.
    :param before: the domain before.
    """

    cloud: Cloud
    server: CloudServer
    flavor: Document
    read_domain: Callable[[CloudServer], Document | None]
    before: Document
    deadline_s: float
    #: whether `read_domain` finds the hvsvc of another host, to which the resize may move the server
    follows: bool = False
    #: Nova has taken the resize: from now on the server may have changed
    taken: bool = False
    steps: list[Document] = field(default_factory=list)
    reasons: list[Document] = field(default_factory=list)

    @property
    def size(self) -> Size:
        """What the flavor gives."""
        return Size(self.flavor["vcpus"], self.flavor["memory_mib"] * 1024)

    def run(self) -> str:
        """Goes the road to its end; the outcome.

        :raise ResizeError: the server does not have the size; what it has is said.
        :raise CloudError: Nova refused the resize, and nothing was changed, or went away.
        """
        with self._step("RESIZE", f"to flavor {self.flavor['name']}") as done:
            request_id = self.cloud.act(
                self.server.id, {"resize": {"flavorRef": self.flavor["id"]}}, "resize"
            )
            self.taken = True
            server = self._wait_resized(request_id)
            done(f"status {server.status} with flavor {server.flavor}")
        if server.status == "VERIFY_RESIZE":
            faults = self._verify()
            if faults:
                self._revert(faults)
            self._confirm()
        else:
            # resize_confirm_window lets Nova confirm by itself
            self.reasons += [_reason(Reason.NOVA_STATE_UNKNOWN, "Nova confirmed the resize by itself")]
        return "UNCONFIRMED" if self.reasons else "COMPLETE"

    def planned_steps(self) -> list[Document]:
        """What `run` would do, where nothing is wrong."""
        planned = {
            "RESIZE": f"to flavor {self.flavor['name']}",
            "VERIFY": _VERIFY_WHY,
            "CONFIRM": _CONFIRM_WHY,
        }
        return [
            {"kind": kind, "effect": "REBOOT", "why": why, "state": "PENDING"}
            for kind, why in planned.items()
        ]

    def read(self, server: CloudServer) -> Document | None:
        """The domain as hvsvc of the server's host reports it; None where none can be asked there."""
        return None if self._is_out_of_reach(server) else self.read_domain(server)

    def _is_out_of_reach(self, server: CloudServer) -> bool:
        # the host that it left keeps its domain, shut off, until the resize is confirmed
        return not self.follows and server.host_id != self.server.host_id

    def _wait_resized(self, request_id: str) -> CloudServer:
        for server in self._looks(self.deadline_s):
            settled = server.task_state is None
            if server.status == "VERIFY_RESIZE" and settled:
                return server
            if server.status == "ERROR":
                raise self._failed(
                    f"Nova put server {server.name} into status ERROR; look at it: openstack server show {server.id}"
                )
            if server.status == "ACTIVE" and settled:
                if server.flavor == self.flavor["name"]:
                    return server
                # A resize for which no host was found goes back to ACTIVE without a word.
                if self._action_failed(request_id):
                    raise self._failed(
                        f"Nova could not resize server {server.name} to flavor {self.flavor['name']}: no host has room "
                        f"for it, or it failed there; the server goes on as it was, with flavor {server.flavor}; see "
                        f"openstack server event show {server.id} {request_id}"
                    )
        message = (
            f"server {self.server.name} was not resized at the end of --timeout; Nova goes on; once it is in "
            f"VERIFY_RESIZE: openstack server resize confirm {self.server.id}, or openstack server resize revert"
        )
        raise ResizeError(Failure("DEADLINE_EXCEEDED", message, Reason.CALL_TIMED_OUT.value))

    def _looks(self, end_s: float) -> Iterator[CloudServer]:
        """The server, again and again until the end; a Nova that is away meanwhile is waited for."""
        while True:
            try:
                yield self.cloud.read_server(self.server.id)
            except CloudError as err:
                if err.failure.code != "UNAVAILABLE" or time.monotonic() >= end_s:
                    raise
            if time.monotonic() >= end_s:
                return
            time.sleep(_POLL_S)

    def _action_failed(self, request_id: str) -> bool:
        try:
            return self.cloud.action_failed(self.server.id, request_id)
        except CloudError as err:
            if err.failure.code != "UNAVAILABLE":
                raise
            return False

    def _verify(self) -> list[str]:
        """What is wrong with the resized server; reasons note what could not be seen."""
        with self._step("VERIFY", _VERIFY_WHY) as done:
            answered = "guest_online" in self.before.get("vcpus", {})
            start_s = time.monotonic()
            faults: list[str] = []
            silent: list[str] = []
            for server in self._looks(start_s + VERIFY_TIMEOUT_S):
                waited_s = time.monotonic() - start_s
                domain = self.read(server)
                if domain is None:
                    if waited_s < UNREACHABLE_TIMEOUT_S and not self._is_out_of_reach(server):
                        continue
                    message = (
                        "no hvsvc could be asked on the server's host: Nova alone says that it is resized"
                    )
                    self.reasons.append(_reason(Reason.LIBVIRT_UNAVAILABLE, message))
                    done("as Nova says")
                    return []
                faults = find_differences(domain, self.size)
                silent = find_guest_differences(domain, self.size)
                if not faults and not silent:
                    done(f"libvirt and the guest have {self.size.vcpus} CPUs")
                    return []
                patience_s = 0.0 if _mute(domain) else SILENT_TIMEOUT_S
                if not faults and not answered and waited_s >= patience_s:
                    self.reasons.append(_reason(Reason.GUEST_CPUS_UNKNOWN, "; ".join(silent)))
                    done("as libvirt says; the guest does not tell")
                    return []
            done("not as the flavor says")
            return [*faults, *silent] or ["hvsvc could not be asked"]

    def _confirm(self) -> None:
        with self._step("CONFIRM", _CONFIRM_WHY) as done:
            self._act_and_wait({"confirmResize": None}, "confirmation of the resize", self.flavor["name"])
            done("status ACTIVE")

    def _revert(self, faults: list[str]) -> None:
        why = "; ".join(faults)
        with self._step("REVERT", why) as done:
            self._act_and_wait({"revertResize": None}, "revert of the resize", self.server.flavor)
            done(f"status ACTIVE with flavor {self.server.flavor}")
        raise self._failed(
            f"the resized server was not as flavor {self.flavor['name']} says ({why}); the resize was reverted, and it "
            f"runs with flavor {self.server.flavor} again"
        )

    def _act_and_wait(self, action: dict[str, None], what: str, flavor: str) -> None:
        try:
            self.cloud.act(self.server.id, action, what)
        except CloudError as err:
            # Nova may have confirmed by itself meanwhile: then the wait ends at once.
            if err.failure.code != "ABORTED":
                raise
        server = self.server
        for server in self._looks(time.monotonic() + END_TIMEOUT_S):
            if server.status == "ACTIVE" and server.task_state is None and server.flavor == flavor:
                return
            if server.status == "ERROR":
                break
        raise self._failed(
            f"the {what} of server {server.name} did not end well: status {server.status}, task "
            f"{server.task_state or 'none'}, flavor {server.flavor}; see openstack server show {server.id}"
        )

    def _failed(self, message: str) -> ResizeError:
        metadata = {"serverId": self.server.id, "flavor": self.flavor["name"]}
        return ResizeError(Failure("FAILED_PRECONDITION", message, Reason.TARGET_NOT_REACHED.value, metadata))

    @contextmanager
    def _step(self, kind: str, why: str) -> Iterator[Callable[[str], None]]:
        step: Document = {
            "kind": kind,
            "effect": "REBOOT",
            "why": why,
            "state": "RUNNING",
            "start_time": _now(),
        }
        self.steps.append(step)
        click.echo(f"hvctl: {kind.lower()}: {safe(why)}", err=True)

        def done(evidence: str) -> None:
            step.update(state="DONE", evidence=evidence)

        try:
            yield done
        finally:
            step["end_time"] = _now()
            if step["state"] != "DONE":
                step["state"] = "FAILED"


def _reason(reason: Reason, message: str) -> Document:
    return {"reason": reason.value, "message": message, "metadata": {}}


def _mute(domain: Document) -> bool:
    """Whether the guest has no agent at all, so that waiting for it is vain."""
    return any(
        item.get("reason") == Reason.AGENT_NOT_CONFIGURED.value for item in domain.get("conditions", [])
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
