"""Everything a plan or a verdict may look at, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from hvsvc.domain.allocation import PlacementPolicy, ProviderRoom
from hvsvc.domain.facts import DomainFacts, HostFacts, ServerFacts
from hvsvc.domain.limits import HostLimits
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class World:
    """The domain, its host, the configured limits and its Nova server.

    `server` is None for a domain that is not Nova's, or where Nova could not tell;
    `server_error` then says why (NOVA_NOT_CONFIGURED, NOVA_UNAVAILABLE, …).
    `room` is what the compute provider could give, None where it was not asked or could
    not tell: Placement itself decides then.
    """

    domain: DomainFacts
    host: HostFacts
    limits: HostLimits
    server: ServerFacts | None = None
    server_error: HvsvcError | None = None
    placement: PlacementPolicy = PlacementPolicy.OFF
    room: ProviderRoom | None = None
