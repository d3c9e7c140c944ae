"""DomainService: reads of the host's domains."""

# ruff: noqa: N802 - gRPC names the methods

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, Final

import grpc

from hvsvc.domain.drift_report import DriftReport
from hvsvc.domain.facts import DomainFacts, DomainState
from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.operations.drifts import Drifts
from hvsvc.operations.reads import DomainReads
from hvsvc.service import pages
from hvsvc.service.conversion import fields
from hvsvc.service.conversion.domains import STATES, to_domain, to_watch
from hvsvc.service.conversion.drifts import to_drift
from hvsvc.service.conversion.hosts import to_host
from hvsvc.service.pages import PageLimits
from hvsvc.v1 import desired_pb2, domain_pb2, domain_pb2_grpc

_STATES: Final[dict[int, DomainState]] = {number: state for state, number in STATES.items()}
_FULL_BY_DEFAULT: Final[dict[int, bool]] = {
    domain_pb2.DOMAIN_VIEW_UNSPECIFIED: True,
    domain_pb2.DOMAIN_VIEW_BASIC: False,
    domain_pb2.DOMAIN_VIEW_FULL: True,
}
_BASIC_BY_DEFAULT: Final[dict[int, bool]] = _FULL_BY_DEFAULT | {domain_pb2.DOMAIN_VIEW_UNSPECIFIED: False}
_MAX_WATCHED: Final = 500


class DomainServicer(domain_pb2_grpc.DomainServiceServicer):
    """Thin: checks the request, asks `DomainReads`, converts."""

    def __init__(self, reads: DomainReads, drifts: Drifts, page_limits: PageLimits) -> None:
        self._reads = reads
        self._drifts = drifts
        self._page_limits = page_limits

    async def ListDomains(
        self,
        request: domain_pb2.ListDomainsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> domain_pb2.ListDomainsResponse:
        """One page, ordered by uuid; one domain more is read to know whether another page follows."""
        states = frozenset(
            fields.choice(_STATES, domain_pb2.DomainState, state, "states") for state in request.states
        )
        server = fields.server_name(request.nova_server, "nova_server")
        full = fields.choice(_BASIC_BY_DEFAULT, domain_pb2.DomainView, request.view, "view")
        size = self._page_limits.size(request.page_size)
        filters = (sorted(state.value for state in states), server)
        after = pages.domain_cursor(filters, request.page_token)
        found = await self._reads.list(
            states=states, nova_server=server, after_uuid=after, limit=size + 1, full=full
        )
        page = found[:size]
        drifts = await self._drifts.of_many([facts for facts in page if isinstance(facts, DomainFacts)])
        now_s = time.time()
        return domain_pb2.ListDomainsResponse(
            domains=[to_domain(facts, now_s, _drift(drifts.get(facts.uuid))) for facts in page],
            next_page_token=pages.domain_token(filters, page[-1].uuid) if len(found) > size else "",
        )

    async def GetDomain(
        self,
        request: domain_pb2.GetDomainRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> domain_pb2.Domain:
        """One domain."""
        name = fields.domain_name(request.name)
        full = fields.choice(_FULL_BY_DEFAULT, domain_pb2.DomainView, request.view, "view")
        facts = await self._reads.get(name, full=full)
        return to_domain(facts, time.time(), _drift(await self._drifts.of(facts)))

    async def GetHost(
        self,
        request: domain_pb2.GetHostRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> domain_pb2.Host:
        """The host, and the sum of its running domains."""
        return to_host(await self._reads.host(), time.time())

    async def WatchDomains(
        self,
        request: domain_pb2.WatchDomainsRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> AsyncIterator[domain_pb2.WatchDomainsResponse]:
        """A snapshot, then changes, until the caller leaves."""
        if len(request.names) > _MAX_WATCHED:
            raise InvalidArgumentError(
                Reason.INVALID_VALUE,
                f"names has {len(request.names)} entries; up to {_MAX_WATCHED} may be given, none for all",
                {"maximum": _MAX_WATCHED},
                field="names",
            )
        names = list(dict.fromkeys(fields.domain_name(name, "names") for name in request.names))
        async for item in self._reads.watch(names):
            drift = await self._drifts.of(item.facts) if isinstance(item.facts, DomainFacts) else None
            yield to_watch(item, time.time(), _drift(drift))


def _drift(report: DriftReport | None) -> desired_pb2.Drift | None:
    return None if report is None else to_drift(report)
