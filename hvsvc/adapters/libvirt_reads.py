"""Reads domains so that one whose QEMU hangs holds up no other, nor whoever lists them all (case GA-07).

Two parts of a read can hang with QEMU: the balloon's statistics, and with a libvirt newer than
9.0 the definition, while anybody waits for that QEMU. So each running domain is read in a call of its
own, one at a time a domain, which is given up after `statistics_timeout_s`. While it has not
come back, or while libvirt says that QEMU keeps somebody else waiting, the domain is not
asked again: it is told as unread at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import libvirt

from hvsvc.adapters.libvirt_facts import Listed, XmlReader, read_balloon, read_facts, read_security_model
from hvsvc.adapters.libvirt_link import Link
from hvsvc.adapters.libvirt_list import Running, list_domains
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from hvsvc.adapters.libvirt_unread import DEFINITION_WAITS_SINCE, read_unread, refuse_silent
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.errors import (
    AbortedError,
    DeadlineError,
    FailedPreconditionError,
    HvsvcError,
    NotFoundError,
)

_logger = logging.getLogger(__name__)


class LibvirtReads:
    """Reads of one domain and of all; `link` is the connection they share with other reads."""

    def __init__(self, settings: LibvirtSettings, xml: XmlReader) -> None:
        self._settings = settings
        self._patience_s = settings.statistics_timeout_s
        self._xml = xml
        self._security_model = ("", "")
        self._definition_waits = False
        # Read-write, for the secrets in the definitions (see CONFIG_XML).
        self.link = Link(settings, "reads", prepare=self._prepare)

    async def read_domain(self, uuid: str, *, hasty: bool) -> DomainFacts:
        """Reads one domain, all in one hop; where QEMU does not answer, the balloon is left out.

        :param hasty: do not wait for the definition while QEMU is silent; else, as for a
            domain that starts or a libvirtd that is slow, up to `call_timeout_s`.
        :raises DeadlineError: CALL_TIMED_OUT.
        """
        asked = f"read domain {uuid}"
        read = _Read(self, uuid, hasty=hasty)

        async def more_s() -> float:
            if read.facts is not None or (hasty and await self._is_silent(uuid)):
                return 0
            return max(self._settings.call_timeout_s - self._patience_s, 0)

        if not self.link.hangs(uuid):
            try:
                return await self.link.call(
                    read.in_full, asked, timeout_s=self._patience_s, domain=uuid, grace=more_s
                )
            except DeadlineError:
                if read.facts is not None:
                    return read.facts
                if read.began:
                    raise
        # another call of this domain is in the way
        if not self._definition_waits and self.link.hangs(uuid):
            return await self.link.call(read.plain, asked)
        if self._definition_waits and hasty:
            await self._refuse_silent(uuid)
        try:
            return await self.link.call(read.in_full, asked, domain=uuid)
        except DeadlineError:
            if read.facts is None:
                raise
            return read.facts

    async def read_domains(self) -> DomainList:
        """Reads every domain, as many at once as the connection serves."""
        found = await self.link.call(
            lambda connection: list_domains(connection, self._xml, self._security_model), "list the domains"
        )
        todo = deque(found.running)
        read, unread = list(found.off), list(found.unread)

        async def work() -> None:
            while todo:
                one = await self._read_listed(todo.popleft())
                if isinstance(one, UnreadDomain):
                    unread.append(one)
                elif one is not None:
                    read.append(one)

        try:
            await asyncio.gather(*(work() for _ in range(self._settings.calls_in_flight)))
        finally:
            todo.clear()  # the others stop, too, where one has failed
        for domain in unread:
            _logger.warning(
                "a domain cannot be read",
                extra={"libvirt_name": domain.libvirt_name, "error": domain.error.message},
            )
        return DomainList(sorted(read, key=_uuid_of), sorted(unread, key=_uuid_of))

    async def _read_listed(self, one: Running) -> DomainFacts | UnreadDomain | None:
        """None where it went away meanwhile."""
        read = _Read(self, one.uuid, one.listed, hasty=True)
        asked = f"read domain {one.uuid}"
        try:
            if not self.link.hangs(one.uuid):
                try:
                    return await self.link.call(
                        read.in_full, asked, timeout_s=self._patience_s, domain=one.uuid
                    )
                except DeadlineError:
                    if read.began or self._definition_waits:
                        raise
            if self._definition_waits:
                raise self.link.timed_out(asked, self._patience_s)
            return await self.link.call(read.plain, asked, timeout_s=self._patience_s)
        except NotFoundError:
            return None
        except (AbortedError, DeadlineError, FailedPreconditionError) as err:
            if read.facts is not None:
                return read.facts
            return await self._read_unread(one, err)

    async def _read_unread(self, one: Running, error: HvsvcError) -> UnreadDomain | None:
        try:
            return await self.link.call(
                lambda connection: read_unread(
                    connection.lookupByUUIDString(one.uuid), one.listed, error, self._patience_s / 2
                ),
                f"read the state of domain {one.uuid}",
                timeout_s=self._patience_s,
            )
        except NotFoundError:
            return None
        except DeadlineError:
            return UnreadDomain(one.uuid, one.libvirt_name, error)

    async def _refuse_silent(self, uuid: str) -> None:
        # half of the patience: whoever had the domain's job may have asked QEMU several things
        await self.link.call(
            lambda connection: refuse_silent(connection.lookupByUUIDString(uuid), self._patience_s / 2),
            f"read the state of domain {uuid}",
            timeout_s=self._patience_s,
        )

    async def _is_silent(self, uuid: str) -> bool:
        if not self._definition_waits:
            return False
        try:
            await self._refuse_silent(uuid)
        except DeadlineError:
            return True
        except HvsvcError:
            return False  # the read itself will say it
        return False

    # ---- in native threads

    def _prepare(self, connection: libvirt.virConnect) -> Callable[[], None]:
        # The first question makes libvirt probe QEMU, for seconds; asked here, no read waits for it.
        self._security_model = read_security_model(connection)
        self._definition_waits = connection.getLibVersion() >= DEFINITION_WAITS_SINCE
        return lambda: None

    def read_plain(self, domain: libvirt.virDomain, listed: Listed | None) -> DomainFacts:
        """All but the balloon."""
        return read_facts(domain, self._xml, self._security_model, listed)

    def refuse_silent(self, domain: libvirt.virDomain) -> None:
        """Refuses a domain whose definition would have to be waited for."""
        if self._definition_waits:
            refuse_silent(domain, self._patience_s)


@dataclass(slots=True)
class _Read:
    """One read of one domain, in native threads; what it found so far outlives a deadline."""

    reads: LibvirtReads
    uuid: str
    listed: Listed | None = None
    hasty: bool = field(kw_only=True)
    began: bool = False
    facts: DomainFacts | None = None

    def plain(self, connection: libvirt.virConnect) -> DomainFacts:
        self.began = True
        return self.reads.read_plain(connection.lookupByUUIDString(self.uuid), self.listed)

    def in_full(self, connection: libvirt.virConnect) -> DomainFacts:
        self.began = True
        domain = connection.lookupByUUIDString(self.uuid)
        if self.hasty:
            self.reads.refuse_silent(domain)
        facts = self.facts = self.reads.read_plain(domain, self.listed)
        # where many hang, as with their storage, a report can do without the balloon; an operation cannot
        if facts.live is None or (self.hasty and self.reads.link.crowded):
            return facts
        try:
            return replace(facts, balloon=read_balloon(domain))
        except libvirt.libvirtError as err:
            if err.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
                raise
            return facts  # it stopped meanwhile


def _uuid_of(domain: DomainFacts | UnreadDomain) -> str:
    return domain.uuid
