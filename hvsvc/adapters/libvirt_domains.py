"""libvirt's domains, as operations need them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from uuid import UUID

import libvirt

from hvsvc.adapters import libvirt_changes as changes
from hvsvc.adapters.libvirt_events import EventHub
from hvsvc.adapters.libvirt_facts import XmlReader, read_balloon, read_facts, read_security_model
from hvsvc.adapters.libvirt_host import read_host, read_resources
from hvsvc.adapters.libvirt_link import Link
from hvsvc.adapters.libvirt_list import find_named, read_all
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.domain.facts import Balloon, DomainEvent, DomainFacts, HostFacts
from hvsvc.domain.host_room import HostResources
from hvsvc.errors import DeadlineError, HvsvcError, NotFoundError, Reason

_logger = logging.getLogger(__name__)


class LibvirtDomains:
    """The hypervisor of one host, through libvirt; fulfils operations' `Hypervisor`.

    Make it while the event loop that uses it runs, `open` it once, `close` it at the end.
    Connections that break are opened again by the next call.
    """

    def __init__(self, settings: LibvirtSettings) -> None:
        self._settings = settings
        self._xml = XmlReader()
        self._security_model = ("", "")
        self._events = EventHub(settings.event_backlog, asyncio.get_running_loop())
        # Read-write, for the secrets in the definitions (see CONFIG_XML).
        self._reads = Link(settings, "reads", prepare=self._prepare_reads)
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

    async def read_domain(self, uuid: str) -> DomainFacts:
        """Reads one domain, all in one hop.

        Where QEMU does not answer, the balloon is left out and the rest returned: that
        needs no answer of QEMU.
        """
        found: list[DomainFacts] = []

        def read(connection: libvirt.virConnect) -> DomainFacts:
            domain = connection.lookupByUUIDString(uuid)
            found.append(read_facts(domain, self._xml, self._security_model))
            return self._add_balloon(domain, found[0])

        def read_plain(connection: libvirt.virConnect) -> DomainFacts:
            return read_facts(connection.lookupByUUIDString(uuid), self._xml, self._security_model)

        asked = f"read domain {uuid}"
        if not self._reads.hangs(uuid):
            patience_s = self._settings.statistics_timeout_s
            try:
                return await self._reads.call(
                    read,
                    asked,
                    timeout_s=patience_s,
                    domain=uuid,
                    # libvirtd itself may be slow: then it is not QEMU that is waited for
                    grace=lambda: 0 if found else max(self._settings.call_timeout_s - patience_s, 0),
                )
            except DeadlineError:
                if found:
                    return found[0]
        return await self._reads.call(read_plain, asked)

    async def read_domains(self) -> Sequence[DomainFacts]:
        """Reads every domain; one whose definition cannot be read is left out, and logged."""
        facts, errors = await self._reads.call(
            lambda connection: read_all(connection, self._xml, self._security_model), "list the domains"
        )
        for name, error in errors:
            _logger.warning("a domain cannot be read", extra={"libvirt_name": name, "error": str(error)})
        off = [one for one in facts if one.live is None]
        running = await asyncio.gather(*(self._with_balloon(one) for one in facts if one.live is not None))
        return sorted([*off, *running], key=lambda one: one.uuid)

    async def find_uuids(self, name: str) -> Sequence[tuple[str, str]]:
        """Finds domains by uuid, libvirt name or Nova server name.

        A uuid names one domain whatever others are called: a server's name is its owner's
        choice, and must not make another domain unreachable.
        """
        with contextlib.suppress(ValueError):
            uuid = str(UUID(name))

            def look_up(connection: libvirt.virConnect) -> tuple[str, str]:
                domain = connection.lookupByUUIDString(uuid)
                return domain.UUIDString(), domain.name()

            with contextlib.suppress(NotFoundError):
                return [await self._reads.call(look_up, f"find domain {uuid}")]
        return await self._reads.call(
            lambda connection: find_named(connection, self._xml, name), "find a domain"
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

    def _prepare_reads(self, connection: libvirt.virConnect) -> Callable[[], None]:
        # The first question makes libvirt probe QEMU, for seconds; asked here, no read waits for it.
        self._security_model = read_security_model(connection)
        return lambda: None

    def _add_balloon(self, domain: libvirt.virDomain, facts: DomainFacts) -> DomainFacts:
        if facts.live is None:
            return facts
        try:
            return replace(facts, balloon=read_balloon(domain))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
                raise
            return facts  # it stopped meanwhile

    async def _with_balloon(self, facts: DomainFacts) -> DomainFacts:
        if self._reads.hangs(facts.uuid):
            return facts
        try:
            return replace(facts, balloon=await self.read_balloon(facts.uuid))
        except HvsvcError:
            return facts  # it hangs, or is gone: what was read stays true
