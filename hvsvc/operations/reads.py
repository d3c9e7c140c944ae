"""Reading use cases: find, report, list and watch domains."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum

from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.host_room import HostRoom, sum_host
from hvsvc.domain.unread import UnreadDomain
from hvsvc.errors import (
    AbortedError,
    DeadlineError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    Reason,
)
from hvsvc.operations.shared_reads import SharedReads
from hvsvc.operations.surroundings import Surroundings

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_PREFIX = "domains/"


class WatchKind(Enum):
    """What one item of a watch says."""

    SNAPSHOT = "snapshot"
    SNAPSHOT_END = "snapshot_end"
    CHANGED = "changed"
    REMOVED = "removed"


@dataclass(frozen=True, slots=True)
class WatchItem:
    """One item of a watch; `facts` is None for SNAPSHOT_END and REMOVED."""

    kind: WatchKind
    uuid: str = ""
    libvirt_name: str = ""
    facts: DomainFacts | UnreadDomain | None = None
    event: str = ""


class DomainReads:
    """Every read of domains; nothing here changes anything."""

    def __init__(self, surroundings: Surroundings, *, max_agent_calls: int = 8) -> None:
        self._around = surroundings
        self._agents = asyncio.Semaphore(max_agent_calls)
        hypervisor = surroundings.hypervisor
        self._every = SharedReads(lambda _: hypervisor.read_domains())
        self._changed = SharedReads(lambda uuid: hypervisor.read_domain(uuid, hasty=True))

    async def resolve(self, name: str) -> str:
        """Finds the uuid of the one domain a caller means; `domains/{uuid}` is taken as it is.

        :param name: `domains/{uuid}`, a uuid, a libvirt name or a Nova server name.
        :raises NotFoundError: DOMAIN_NOT_FOUND.
        :raises InvalidArgumentError: AMBIGUOUS_NAME, with the candidates.
        """
        wanted = name.removeprefix(_PREFIX)
        found: Sequence[tuple[str, str]] = []
        if not name.startswith(_PREFIX):
            found = await self._around.hypervisor.find_uuids(wanted.lower() if is_uuid(wanted) else wanted)
        elif is_uuid(wanted):
            return wanted.lower()  # this is which one is meant; whoever reads it learns whether it is there
        if not found:
            raise NotFoundError(
                Reason.DOMAIN_NOT_FOUND,
                f"no domain of this host has the uuid, libvirt name or Nova name {wanted!r}; list them (hvctl list) or "
                "ask the host that runs the server",
                {"asked": wanted},
            )
        if len(found) > 1:
            candidates = ", ".join(f"domains/{uuid} ({libvirt_name})" for uuid, libvirt_name in found)
            raise InvalidArgumentError(
                Reason.AMBIGUOUS_NAME,
                f"{wanted!r} names {len(found)} domains of this host: {candidates}; give one of their uuids",
                {"asked": wanted, "candidates": candidates},
                field="name",
            )
        return found[0][0]

    async def get(self, name: str, *, full: bool) -> DomainFacts:
        """Reports one domain; `full` asks the guest agent and Placement too.

        :raises DeadlineError: CALL_TIMED_OUT, soon where its QEMU is silent.
        """
        facts = await self._around.read_domain(await self.resolve(name), ask_guest=False, hasty=True)
        return await self._around.in_full(facts) if full else facts

    async def list(
        self, *, states: frozenset[DomainState], nova_server: str, after_uuid: str, limit: int, full: bool
    ) -> Sequence[DomainFacts | UnreadDomain]:
        """Lists at most `limit` domains with a uuid above `after_uuid`, in the order of their uuids.

        One that cannot be read is there wherever nothing that is known of it rules it out.
        """
        domains = await self._every.read("")
        every: list[DomainFacts | UnreadDomain] = [*domains.read, *domains.unread]
        found = sorted(
            (
                domain
                for domain in every
                if domain.uuid > after_uuid
                and (not states or domain.state in states or domain.state is None)
                and (not nova_server or _is_server(domain, nova_server))
            ),
            key=lambda domain: domain.uuid,
        )[:limit]
        if not full:
            return found
        return await asyncio.gather(*(self._in_full(domain) for domain in found))

    async def _in_full(self, domain: DomainFacts | UnreadDomain) -> DomainFacts | UnreadDomain:
        if isinstance(domain, UnreadDomain):
            return domain
        async with self._agents:
            return await self._around.in_full(domain)

    async def host(self) -> HostRoom:
        """Sums what the running domains have, beside what the host could give."""
        around = self._around
        return sum_host(await around.hypervisor.read_resources(), around.limits, await self._every.read(""))

    async def watch(self, names: Sequence[str]) -> AsyncIterator[WatchItem]:
        """Yields every domain once, then each change; never ends by itself.

        :raises NotFoundError: where a name fits no domain now.
        :raises UnavailableError: when the connection to libvirt is lost.
        :raises ExhaustedError: when the reader is too slow.
        """
        wanted = {await self._find_present(name) for name in names}
        async with self._around.hypervisor.events() as events:
            domains = await self._every.read("")
            for facts in domains.read:
                if not wanted or facts.uuid in wanted:
                    yield WatchItem(WatchKind.SNAPSHOT, facts.uuid, facts.libvirt_name, facts)
            for unread in domains.unread:
                if not wanted or unread.uuid in wanted:
                    yield WatchItem(WatchKind.SNAPSHOT, unread.uuid, unread.libvirt_name, unread)
            yield WatchItem(WatchKind.SNAPSHOT_END)
            async for event in events:
                if wanted and event.uuid not in wanted:
                    continue
                found: DomainFacts | UnreadDomain
                try:
                    found = await self._changed.read(event.uuid)
                except NotFoundError:
                    yield WatchItem(WatchKind.REMOVED, event.uuid, event.libvirt_name, event=event.text)
                    continue
                except (AbortedError, DeadlineError, FailedPreconditionError) as err:
                    found = UnreadDomain(event.uuid, event.libvirt_name, err)
                yield WatchItem(WatchKind.CHANGED, found.uuid, found.libvirt_name, found, event.text)

    async def _find_present(self, name: str) -> str:
        """The uuid of a domain that is there, whether it can be read or not."""
        uuid = await self.resolve(name)
        return uuid if not name.startswith(_PREFIX) else await self.resolve(uuid)


def _is_server(domain: DomainFacts | UnreadDomain, wanted: str) -> bool:
    if isinstance(domain, UnreadDomain) and domain.state is None:
        return True  # libvirt told its names alone: it may be
    return domain.nova is not None and wanted in (domain.uuid, domain.nova.name)


def is_uuid(name: str) -> bool:
    """Whether a name is a uuid as libvirt and Nova write it."""
    return _UUID.fullmatch(name.lower()) is not None
