"""Reading use cases: find, report, list and watch domains."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from enum import Enum

from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.domain.host_room import HostRoom, sum_host
from hvsvc.errors import InvalidArgumentError, NotFoundError, Reason
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
    facts: DomainFacts | None = None
    event: str = ""


class DomainReads:
    """Every read of domains; nothing here changes anything."""

    def __init__(self, surroundings: Surroundings, *, max_agent_calls: int = 8) -> None:
        self._around = surroundings
        self._agents = asyncio.Semaphore(max_agent_calls)

    async def resolve(self, name: str) -> str:
        """Finds the uuid of the one domain a caller means; `domains/{uuid}` is taken as it is.

        :param name: `domains/{uuid}`, a uuid, a libvirt name or a Nova server name.
        :raises NotFoundError: DOMAIN_NOT_FOUND.
        :raises InvalidArgumentError: AMBIGUOUS_NAME, with the candidates.
        """
        wanted = name.removeprefix(_PREFIX)
        is_uuid = _UUID.fullmatch(wanted.lower()) is not None
        found: Sequence[tuple[str, str]] = []
        if not name.startswith(_PREFIX):
            found = await self._around.hypervisor.find_uuids(wanted.lower() if is_uuid else wanted)
        elif is_uuid:
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
        """Reports one domain; `full` asks the guest agent and Placement too."""
        facts = await self._around.read_domain(await self.resolve(name), ask_guest=False)
        return await self._around.in_full(facts) if full else facts

    async def list(
        self, *, states: frozenset[DomainState], nova_server: str, after_uuid: str, limit: int, full: bool
    ) -> Sequence[DomainFacts]:
        """Lists at most `limit` domains with a uuid above `after_uuid`, in the order of their uuids."""
        found = [
            facts
            for facts in await self._around.hypervisor.read_domains()
            if facts.uuid > after_uuid
            and (not states or facts.state in states)
            and (not nova_server or _is_server(facts, nova_server))
        ][:limit]
        if not full:
            return found
        return await asyncio.gather(*(self._in_full(facts) for facts in found))

    async def _in_full(self, facts: DomainFacts) -> DomainFacts:
        async with self._agents:
            return await self._around.in_full(facts)

    async def host(self) -> HostRoom:
        """Sums what the running domains have, beside what the host could give."""
        around = self._around
        return sum_host(
            await around.hypervisor.read_resources(), around.limits, await around.hypervisor.read_domains()
        )

    async def watch(self, names: Sequence[str]) -> AsyncIterator[WatchItem]:
        """Yields every domain once, then each change; never ends by itself.

        :raises NotFoundError: where a name fits no domain now.
        :raises UnavailableError: when the connection to libvirt is lost.
        :raises ExhaustedError: when the reader is too slow.
        """
        hypervisor = self._around.hypervisor
        wanted = {(await hypervisor.read_domain(await self.resolve(name))).uuid for name in names}
        async with hypervisor.events() as events:
            for facts in await hypervisor.read_domains():
                if not wanted or facts.uuid in wanted:
                    yield WatchItem(WatchKind.SNAPSHOT, facts.uuid, facts.libvirt_name, facts)
            yield WatchItem(WatchKind.SNAPSHOT_END)
            async for event in events:
                if wanted and event.uuid not in wanted:
                    continue
                try:
                    facts = await hypervisor.read_domain(event.uuid)
                except NotFoundError:
                    yield WatchItem(WatchKind.REMOVED, event.uuid, event.libvirt_name, event=event.text)
                else:
                    yield WatchItem(WatchKind.CHANGED, facts.uuid, facts.libvirt_name, facts, event.text)


def _is_server(facts: DomainFacts, wanted: str) -> bool:
    return facts.nova is not None and wanted in (facts.uuid, facts.nova.name)
