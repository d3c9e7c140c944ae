"""Everything a plan or a verdict may look at, read at one moment."""

from __future__ import annotations

from dataclasses import dataclass

from hvsvc.domain.facts import DomainFacts, HostFacts, ServerFacts
from hvsvc.domain.limits import HostLimits
from hvsvc.errors import HvsvcError


@dataclass(frozen=True, slots=True)
class World:
    """The domain, its host, the configured limits and its Nova server.

    `server` is None for a domain that is not Nova's, or where Nova could not tell;
    `server_error` then says why (NOVA_NOT_CONFIGURED, NOVA_UNAVAILABLE, …).
    """

    domain: DomainFacts
    host: HostFacts
    limits: HostLimits
    server: ServerFacts | None = None
    server_error: HvsvcError | None = None
