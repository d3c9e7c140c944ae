"""libvirt's domain events, handed from its native thread to the readers on the event loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import libvirt

from hvsvc.domain.facts import DomainEvent, LifecycleEvent
from hvsvc.errors import ExhaustedError, HvsvcError, Reason, UnavailableError

# Event and detail numbers: https://libvirt.org/html/libvirt-libvirt-domain.html#virDomainEventType
_EVENTS: dict[int, tuple[str, tuple[str, ...]]] = {
    0: ("DEFINED", ("ADDED", "UPDATED", "RENAMED", "FROM_SNAPSHOT")),
    1: ("UNDEFINED", ("REMOVED", "RENAMED")),
    2: ("STARTED", ("BOOTED", "MIGRATED", "RESTORED", "FROM_SNAPSHOT", "WAKEUP")),
    3: (
        "SUSPENDED",
        (
            "PAUSED",
            "MIGRATED",
            "IOERROR",
            "WATCHDOG",
            "RESTORED",
            "FROM_SNAPSHOT",
            "API_ERROR",
            "POSTCOPY",
            "POSTCOPY_FAILED",
        ),
    ),
    4: ("RESUMED", ("UNPAUSED", "MIGRATED", "FROM_SNAPSHOT", "POSTCOPY", "POSTCOPY_FAILED")),
    5: ("STOPPED", ("SHUTDOWN", "DESTROYED", "CRASHED", "MIGRATED", "SAVED", "FAILED", "FROM_SNAPSHOT")),
    6: ("SHUTDOWN", ("FINISHED", "GUEST", "HOST")),
    7: ("PMSUSPENDED", ("MEMORY", "DISK")),
    8: ("CRASHED", ("PANICKED", "CRASHLOADED")),
}
_KINDS: dict[str, LifecycleEvent] = {
    "DEFINED ADDED": LifecycleEvent.DEFINED_ADDED,
    "DEFINED": LifecycleEvent.DEFINED_UPDATED,
    "UNDEFINED": LifecycleEvent.UNDEFINED,
    "STARTED": LifecycleEvent.STARTED,
    "SUSPENDED": LifecycleEvent.SUSPENDED,
    "RESUMED": LifecycleEvent.RESUMED,
    "STOPPED SHUTDOWN": LifecycleEvent.STOPPED_SHUTDOWN,
    "STOPPED DESTROYED": LifecycleEvent.STOPPED_DESTROYED,
    "STOPPED CRASHED": LifecycleEvent.STOPPED_CRASHED,
    "STOPPED FAILED": LifecycleEvent.STOPPED_FAILED,
    "STOPPED": LifecycleEvent.STOPPED_OTHER,
    "SHUTDOWN": LifecycleEvent.SHUTDOWN,
    "PMSUSPENDED": LifecycleEvent.PMSUSPENDED,
    "CRASHED": LifecycleEvent.CRASHED,
}
_AGENT_STATES = {
    libvirt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED: LifecycleEvent.AGENT_CONNECTED,
    libvirt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_DISCONNECTED: LifecycleEvent.AGENT_DISCONNECTED,
}
#: further events that say a domain's facts changed, and nothing more
_OTHERS = {
    libvirt.VIR_DOMAIN_EVENT_ID_METADATA_CHANGE: "METADATA CHANGED",
    libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_ADDED: "DEVICE ADDED",
    libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVED: "DEVICE REMOVED",
    libvirt.VIR_DOMAIN_EVENT_ID_DEVICE_REMOVAL_FAILED: "DEVICE REMOVAL FAILED",
    libvirt.VIR_DOMAIN_EVENT_ID_MEMORY_DEVICE_SIZE_CHANGE: "MEMORY DEVICE SIZE CHANGED",
}


def parse_lifecycle(event: int, detail: int) -> tuple[LifecycleEvent, str]:
    """The kind and libvirt's words of a lifecycle event; numbers of a newer libvirt stay numbers."""
    name, details = _EVENTS.get(event, (f"EVENT {event}", ()))
    text = f"{name} {details[detail] if 0 <= detail < len(details) else detail}"
    return _KINDS.get(text) or _KINDS.get(name, LifecycleEvent.OTHER), text


class Subscription(AsyncIterator[DomainEvent]):
    """One reader's events, in order; ends with the error that ended it."""

    def __init__(self, uuid: str | None, backlog: int) -> None:
        self._uuid = uuid
        self._backlog = backlog
        self._events: asyncio.Queue[DomainEvent | HvsvcError] = asyncio.Queue()
        self._error: HvsvcError | None = None

    def publish(self, event: DomainEvent) -> None:
        """Adds an event, if it is of the domain asked for."""
        if self._error is not None or self._uuid not in (None, event.uuid):
            return
        if self._events.qsize() >= self._backlog:
            self.end(
                ExhaustedError(
                    Reason.READER_TOO_SLOW,
                    f"{self._backlog} events wait unread, and more would be lost: read the domains, then watch again.",
                )
            )
            return
        self._events.put_nowait(event)

    def end(self, error: HvsvcError) -> None:
        """Lets the reader have what came before, then the error."""
        if self._error is None:
            self._error = error
            self._events.put_nowait(error)

    async def __anext__(self) -> DomainEvent:
        item = await self._events.get()
        if isinstance(item, HvsvcError):
            self._events.put_nowait(item)  # for whoever asks again
            raise item
        return item


class EventHub:
    """Spreads the events of the watching connection to its subscriptions."""

    def __init__(self, backlog: int, loop: asyncio.AbstractEventLoop) -> None:
        self._backlog = backlog
        self._loop = loop
        self._subscriptions: set[Subscription] = set()

    def subscribe(self, uuid: str | None) -> Subscription:
        """A new reader; its events begin now."""
        subscription = Subscription(uuid, self._backlog)
        self._subscriptions.add(subscription)
        return subscription

    def unsubscribe(self, subscription: Subscription) -> None:
        """Forgets a reader."""
        self._subscriptions.discard(subscription)

    def end_all(self, message: str) -> None:
        """Tells every reader that events may have been missed."""
        for subscription in self._subscriptions:
            subscription.end(UnavailableError(Reason.LIBVIRT_UNAVAILABLE, message))

    def register(self, connection: libvirt.virConnect) -> Callable[[], None]:
        """Registers for the events of every domain; in a native thread. Returns what undoes it.

        A driver that lacks one kind of event, as the test driver does, gives the others.
        """
        wanted: list[tuple[int, Callable[..., None]]] = [
            (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, self._on_lifecycle),
            (libvirt.VIR_DOMAIN_EVENT_ID_REBOOT, self._on_reboot),
            (libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, self._on_agent),
            (libvirt.VIR_DOMAIN_EVENT_ID_BALLOON_CHANGE, self._on_balloon),
            *((number, self._on_other) for number in _OTHERS),
        ]
        registered: list[int] = []
        for number, callback in wanted:
            with contextlib.suppress(libvirt.libvirtError):
                registered.append(connection.domainEventRegisterAny(None, number, callback, number))

        def undo() -> None:
            for callback_id in registered:
                connection.domainEventDeregisterAny(callback_id)

        return undo

    # ---- in libvirt's native thread

    def _on_lifecycle(
        self, _connection: Any, domain: libvirt.virDomain, event: int, detail: int, _opaque: Any
    ) -> None:
        self._hand_over(domain, *parse_lifecycle(event, detail))

    def _on_reboot(self, _connection: Any, domain: libvirt.virDomain, _opaque: Any) -> None:
        self._hand_over(domain, LifecycleEvent.REBOOTED, "REBOOTED")

    def _on_agent(
        self, _connection: Any, domain: libvirt.virDomain, state: int, reason: int, _opaque: Any
    ) -> None:
        kind = _AGENT_STATES.get(state, LifecycleEvent.OTHER)
        self._hand_over(domain, kind, kind.value if kind is not LifecycleEvent.OTHER else f"AGENT {state}")

    def _on_balloon(self, _connection: Any, domain: libvirt.virDomain, actual_kib: int, _opaque: Any) -> None:
        self._hand_over(domain, LifecycleEvent.BALLOON_CHANGED, f"BALLOON CHANGED {actual_kib} KiB")

    def _on_other(self, _connection: Any, domain: libvirt.virDomain, *details: Any) -> None:
        self._hand_over(domain, LifecycleEvent.OTHER, _OTHERS[details[-1]])

    def _hand_over(self, domain: libvirt.virDomain, kind: LifecycleEvent, text: str) -> None:
        event = DomainEvent(domain.UUIDString(), domain.name(), kind, text)
        with contextlib.suppress(RuntimeError):  # the event loop may have ended
            self._loop.call_soon_threadsafe(self._publish, event)

    def _publish(self, event: DomainEvent) -> None:
        for subscription in tuple(self._subscriptions):
            subscription.publish(event)
