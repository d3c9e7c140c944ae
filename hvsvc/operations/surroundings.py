"""Reads a domain together with all that a plan or a verdict looks at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, GuestAgentError, HvsvcError, Reason
from hvsvc.operations.ports import Guest, Hypervisor, Servers


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Reads through the adapters; `servers` is None on a host without a Nova credential."""

    hypervisor: Hypervisor
    guest: Guest
    servers: Servers | None
    limits: HostLimits

    async def read_world(self, uuid: str, *, ask_guest: bool) -> World:
        """Reads the domain, its host and its Nova server.

        :raises HvsvcError: where libvirt cannot tell; the guest's and Nova's silence
            is part of the answer.
        """
        domain = await self.hypervisor.read_domain(uuid)
        # None of them waits for another: a silent agent takes its time while Nova answers.
        seen, host, (server, error) = await asyncio.gather(
            self.with_guest(domain) if ask_guest else _as_it_is(domain),
            self.hypervisor.read_host(domain),
            self._read_server(domain),
        )
        return World(seen, host, self.limits, server, error)

    async def read_domain(self, uuid: str, *, ask_guest: bool) -> DomainFacts:
        """Reads the domain, and the guest's CPUs where asked; a silent guest is noted in the facts."""
        domain = await self.hypervisor.read_domain(uuid)
        if not ask_guest:
            return domain
        return await self.with_guest(domain)

    async def with_guest(self, domain: DomainFacts) -> DomainFacts:
        """Adds what the guest agent says to facts already read."""
        live = domain.live
        if not domain.running or live is None:
            return domain
        if not live.agent_configured:
            return replace(
                domain,
                guest_error=GuestAgentError(
                    Reason.AGENT_NOT_CONFIGURED,
                    "the domain has no guest agent channel; add one (for a Nova server: image property "
                    "hw_qemu_guest_agent=yes)",
                ),
            )
        try:
            return replace(domain, guest=await self.guest.read_cpus(domain.uuid))
        except GuestAgentError as err:
            return replace(domain, guest_error=err)

    async def _read_server(self, domain: DomainFacts) -> tuple[ServerFacts | None, HvsvcError | None]:
        if domain.nova is None:
            return None, None
        if self.servers is None:
            return None, FailedPreconditionError(
                Reason.NOVA_NOT_CONFIGURED,
                "the domain is Nova's, and this host has no Nova credential; set [nova] cloud in hvsvc's configuration",
            )
        try:
            return await self.servers.read_server(domain.uuid), None
        except HvsvcError as err:
            return None, err


async def _as_it_is(domain: DomainFacts) -> DomainFacts:
    return domain
