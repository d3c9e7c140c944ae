"""Reads a domain together with all that a plan or a verdict looks at."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from hvsvc.domain.allocation import PlacementPolicy, ProviderRoom
from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.world import World
from hvsvc.errors import FailedPreconditionError, GuestAgentError, HvsvcError, Reason
from hvsvc.operations.ports import Guest, Hypervisor, Placement, Servers


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Reads through the adapters; `servers` is None on a host without a Nova credential.

    `placement` is None there too, and under policy OFF.
    """

    hypervisor: Hypervisor
    guest: Guest
    servers: Servers | None
    limits: HostLimits
    placement: Placement | None = None
    policy: PlacementPolicy = PlacementPolicy.OFF

    async def read_world(self, uuid: str, *, ask_guest: bool, hasty: bool = False) -> World:
        """Reads the domain, its host, its allocation and its Nova server.

        `hasty` is for a caller that waits, not for an operation that has begun.

        :raises HvsvcError: where libvirt cannot tell; the silence of the guest, of Nova
            and of Placement is part of the answer.
        """
        domain = await self.hypervisor.read_domain(uuid, hasty=hasty)
        # None of them waits for another: a silent agent takes its time while Nova answers.
        seen, host, (allocated, room, server, error) = await asyncio.gather(
            self.with_guest(domain) if ask_guest else _as_it_is(domain),
            self.hypervisor.read_host(domain),
            self._read_cloud(domain),
        )
        return World(_with_both(seen, allocated), host, self.limits, server, error, self.policy, room)

    async def _read_cloud(
        self, domain: DomainFacts
    ) -> tuple[DomainFacts, ProviderRoom | None, ServerFacts | None, HvsvcError | None]:
        """Nova after the allocation: a task that Nova began in between then shows, and the allocation is let alone."""
        domain = await self.with_allocation(domain)
        room, server = await asyncio.gather(self._read_room(domain), self._read_server(domain))
        return domain, room, *server

    async def read_domain(self, uuid: str, *, ask_guest: bool, hasty: bool = False) -> DomainFacts:
        """Reads the domain, and the guest's CPUs where asked; a silent guest is noted in the facts."""
        domain = await self.hypervisor.read_domain(uuid, hasty=hasty)
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

    async def in_full(self, domain: DomainFacts) -> DomainFacts:
        """Adds what the guest agent and Placement say to facts already read; neither waits for the other."""
        return _with_both(*await asyncio.gather(self.with_guest(domain), self.with_allocation(domain)))

    async def with_allocation(self, domain: DomainFacts) -> DomainFacts:
        """Adds what Placement has allocated to a server; a Placement that cannot tell is noted in the facts."""
        if domain.nova is None or self.placement is None:
            return domain
        try:
            return replace(domain, allocation=await self.placement.read_allocation(domain.uuid))
        except HvsvcError as err:
            return replace(domain, allocation_error=err)

    async def _read_room(self, domain: DomainFacts) -> ProviderRoom | None:
        if domain.allocation is None or self.placement is None or self.policy is not PlacementPolicy.ENFORCE:
            return None
        try:
            return await self.placement.read_room(domain.allocation.resource_provider)
        except HvsvcError:
            return None  # Placement itself then decides when the allocation is written

    async def _read_server(self, domain: DomainFacts) -> tuple[ServerFacts | None, HvsvcError | None]:
        return await self.read_server(domain.uuid, is_server=domain.nova is not None)

    async def read_server(
        self, uuid: str, *, is_server: bool
    ) -> tuple[ServerFacts | None, HvsvcError | None]:
        """Asks Nova for the server of a domain, on this host or not; its silence is the second value."""
        if not is_server:
            return None, None
        if self.servers is None:
            return None, FailedPreconditionError(
                Reason.NOVA_NOT_CONFIGURED,
                "the domain is Nova's, and this host has no Nova credential; set [nova] cloud in hvsvc's configuration",
            )
        try:
            return await self.servers.read_server(uuid), None
        except HvsvcError as err:
            return None, err


def _with_both(seen: DomainFacts, allocated: DomainFacts) -> DomainFacts:
    return replace(seen, allocation=allocated.allocation, allocation_error=allocated.allocation_error)


async def _as_it_is(domain: DomainFacts) -> DomainFacts:
    return domain
