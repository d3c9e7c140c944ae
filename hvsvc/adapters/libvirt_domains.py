"""libvirt's domains, as operations need them."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from uuid import UUID

import libvirt

from hvsvc.adapters import libvirt_changes as changes
from hvsvc.adapters.libvirt_events import EventHub
from hvsvc.adapters.libvirt_facts import XmlReader, read_balloon
from hvsvc.adapters.libvirt_host import read_host, read_resources
from hvsvc.adapters.libvirt_link import Link
from hvsvc.adapters.libvirt_list import find_named
from hvsvc.adapters.libvirt_reads import LibvirtReads
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.domain.facts import Balloon, DomainEvent, DomainFacts, HostFacts
from hvsvc.domain.host_room import HostResources
from hvsvc.domain.unread import DomainList
from hvsvc.errors import NotFoundError, Reason


class LibvirtDomains:
    """The hypervisor of one host, through libvirt; fulfils operations' `Hypervisor`.

    Make it while the event loop that uses it runs, `open` it once, `close` it at the end.
    Connections that break are opened again by the next call.
    """

    def __init__(self, settings: LibvirtSettings) -> None:
        self._settings = settings
        self._xml = XmlReader()
        self._events = EventHub(settings.event_backlog, asyncio.get_running_loop())
        self._domains = LibvirtReads(settings, self._xml)
        self._reads = self._domains.link
        self._changes = Link(settings, "changes")
        # A shutdown through the agent may hang with it, and must not hold up other changes.
        self._agent = Link(settings, "agent")
        self._watching = Link(
            settings,
            "watching",
            read_only=True,
            prepare=self._events.register,
            on_closed=lambda: self._events.end_all(
                "The connection to libvirt was lost, events may be missed: read the domains, then watch again."
            ),
        )

    async def open(self) -> None:
        """Opens the connections that every daemon needs.

        Not needed before the first call; it shows early whether libvirt is there.

        :raises UnavailableError: LIBVIRT_UNAVAILABLE; the next call tries again.
        """
        await asyncio.gather(
            self.probe(), self._reads.call(lambda connection: connection.getLibVersion(), "open libvirt")
        )

    async def close(self) -> None:
        """Closes the connections; a call that hangs is left to the end of the process."""
        self._events.end_all("The service is shutting down.")
        for link in (self._reads, self._changes, self._agent, self._watching):
            link.close()

    async def probe(self) -> int:
        """Asks libvirt for a sign of life: its version, as 1,000,000 * major + 1,000 * minor + release."""
        return int(
            await self._watching.call(
                lambda connection: connection.getLibVersion(), "ask for libvirt's version"
            )
        )

    async def read_domain(self, uuid: str, *, hasty: bool = False) -> DomainFacts:
        """Reads one domain; where QEMU does not answer, without the balloon.

        :param hasty: told as CALL_TIMED_OUT soon where nothing can be read while QEMU is silent.
        """
        return await self._domains.read_domain(uuid, hasty=hasty)

    async def read_domains(self) -> DomainList:
        """Reads every domain; one that cannot be read holds up no other, and is told as such, and logged."""
        return await self._domains.read_domains()

    async def find_uuids(self, name: str) -> Sequence[tuple[str, str]]:
        """Finds domains by uuid, libvirt name or Nova server name.

        A uuid names one domain whatever others are called: a server's name is its owner's
        choice, and must neither make another domain unreachable, nor stand in for one that
        left this host. A libvirt name is not the owner's.
        """
        is_uuid = False
        with contextlib.suppress(ValueError):
            uuid = str(UUID(name))
            is_uuid = uuid == name.lower()

            def look_up(connection: libvirt.virConnect) -> tuple[str, str]:
                domain = connection.lookupByUUIDString(uuid)
                return domain.UUIDString(), domain.name()

            with contextlib.suppress(NotFoundError):
                return [await self._reads.call(look_up, f"find domain {uuid}")]
        return await self._reads.call(
            lambda connection: find_named(connection, name, as_server=not is_uuid), "find a domain"
        )

    async def read_balloon(self, uuid: str) -> Balloon:
        """Reads the balloon's statistics.

        :raises FailedPreconditionError: DOMAIN_NOT_RUNNING.
        :raises DeadlineError: CALL_TIMED_OUT while QEMU does not answer.
        """
        return await self._reads.call(
            lambda connection: read_balloon(changes.look_up_running(connection, uuid)),
            f"read the balloon of domain {uuid}",
            timeout_s=self._settings.statistics_timeout_s,
            domain=uuid,
        )

    async def read_host(self, facts: DomainFacts) -> HostFacts:
        """Reads what the host could give to this domain."""
        return await self._reads.call(
            lambda connection: read_host(connection, facts.uuid, facts.definition), "read the host"
        )

    async def read_resources(self) -> HostResources:
        """Reads what the host has."""
        return await self._reads.call(read_resources, "read the host")

    async def define(self, uuid: str, previous_etag: str, xml: str) -> None:
        """Defines `xml` if the stored definition still has `previous_etag`.

        :raises AbortedError: DEFINITION_CHANGED; nothing is written then.
        :raises FailedPreconditionError: DEFINITION_REFUSED, TRANSIENT_DOMAIN; likewise.
        """
        await self._changes.call(
            lambda connection: changes.define(connection, self._xml, uuid, previous_etag, xml),
            f"define domain {uuid}",
            refusal=Reason.DEFINITION_REFUSED,
            domain=uuid,
        )

    async def set_vcpus_live(self, uuid: str, vcpus: int) -> None:
        """Plugs vCPUs into the running domain, never unplugs.

        :raises FailedPreconditionError: ABOVE_LIVE_CEILING, LIVE_VCPU_SHRINK,
            DOMAIN_NOT_RUNNING, HYPERVISOR_REFUSED; after the last, read again: a part of
            the vCPUs may be there (case CPU-07).
        """
        await self._changes.call(
            lambda connection: changes.set_vcpus_live(connection, uuid, vcpus),
            f"set {vcpus} vCPUs on running domain {uuid}",
            domain=uuid,
        )

    async def set_memory_live(self, uuid: str, memory_kib: int) -> None:
        """Sets the balloon's target.

        :raises FailedPreconditionError: ABOVE_LIVE_CEILING, NO_BALLOON, DOMAIN_NOT_RUNNING,
            HYPERVISOR_REFUSED.
        """
        await self._changes.call(
            lambda connection: changes.set_memory_live(connection, self._xml, uuid, memory_kib),
            f"set {memory_kib} KiB on running domain {uuid}",
            domain=uuid,
        )

    async def shut_down(self, uuid: str, *, agent: bool) -> None:
        """Asks the guest to shut down; whether it does is for the caller to watch.

        :raises FailedPreconditionError: DOMAIN_NOT_RUNNING, HYPERVISOR_REFUSED.
        :raises GuestAgentError: with `agent`: AGENT_NOT_CONFIGURED, AGENT_NOT_CONNECTED, AGENT_SILENT.
        """
        await (self._agent if agent else self._changes).call(
            lambda connection: changes.shut_down(connection, self._xml, uuid, agent=agent),
            f"shut down domain {uuid}",
            domain=uuid,
        )

    async def start(self, uuid: str) -> None:
        """Starts a domain that is off.

        :raises FailedPreconditionError: START_FAILED.
        """
        await self._changes.call(
            lambda connection: changes.start(connection, uuid),
            f"start domain {uuid}",
            timeout_s=self._settings.start_timeout_s,
            refusal=Reason.START_FAILED,
            domain=uuid,
        )

    @contextlib.asynccontextmanager
    async def events(self, uuid: str | None = None) -> AsyncIterator[AsyncIterator[DomainEvent]]:
        """Subscribes to the events of one domain or all; none is lost from entering on."""
        subscription = self._events.subscribe(uuid)
        try:
            await self.probe()  # the connection that brings them is there
            yield subscription
        finally:
            self._events.unsubscribe(subscription)
