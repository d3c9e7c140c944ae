"""ListDomains against an empty RPC and the raw libvirt calls for the same domains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import libvirt

from hvsvc.v1.domain_pb2 import DOMAIN_VIEW_BASIC, ListDomainsRequest
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from tests.bench.comparison import compare, is_flat, take_turns, where_time_goes
from tests.bench.site import Site

TARGET = 1.3
FLAT = 1.3
_GROUPS = (
    libvirt.VIR_DOMAIN_STATS_STATE
    | libvirt.VIR_DOMAIN_STATS_CPU_TOTAL
    | libvirt.VIR_DOMAIN_STATS_BALLOON
    | libvirt.VIR_DOMAIN_STATS_VCPU
)
_CONFIG_XML = libvirt.VIR_DOMAIN_XML_SECURE | libvirt.VIR_DOMAIN_XML_INACTIVE


def read_stats(connection: libvirt.virConnect) -> None:
    """State, CPU time, balloon and vCPUs of every domain in one call: no stored value, topology or owner."""
    connection.getAllDomainStats(_GROUPS)


def read_all_facts(connection: libvirt.virConnect) -> None:
    """The fewest calls that have all of ListDomains' facts: the stats, the definitions, and three lists."""
    found = connection.getAllDomainStats(_GROUPS)
    for flag in (
        libvirt.VIR_CONNECT_LIST_DOMAINS_PERSISTENT,
        libvirt.VIR_CONNECT_LIST_DOMAINS_AUTOSTART,
        libvirt.VIR_CONNECT_LIST_DOMAINS_MANAGEDSAVE,
    ):
        connection.listAllDomains(flag)
    for domain, stats in found:
        domain.XMLDesc(_CONFIG_XML)
        if stats["state.state"] != libvirt.VIR_DOMAIN_SHUTOFF:
            domain.XMLDesc(libvirt.VIR_DOMAIN_XML_SECURE)


def measure(site: Site, rounds: int) -> dict[str, Any]:
    """All domains that are there, in one page."""
    list_domains = DomainServiceStub(site.channels["unix"]).ListDomains
    request = ListDomainsRequest(page_size=500, view=DOMAIN_VIEW_BASIC)
    domains = site.connection.listAllDomains(0)
    count = len(domains)
    assert len(list_domains(request, timeout=60).domains) == count
    times = take_turns(
        {
            "ListDomains": lambda: list_domains(request, timeout=60),
            "getAllDomainStats": lambda: read_stats(site.connection),
            "empty RPC": site.empty["unix"],
            "definitions": lambda: [domain.XMLDesc(_CONFIG_XML) for domain in domains],
            "raw calls, ListDomains' facts": lambda: read_all_facts(site.connection),
        },
        rounds,
    )
    return {
        "domains": count,
        "per_domain_ms": round(times["ListDomains"].p50_s * 1000 / count, 4),
        "against_its_facts": compare(
            times, "ListDomains", ("empty RPC", "raw calls, ListDomains' facts"), target=TARGET
        ),
        "against_stats_alone": compare(times, "ListDomains", ("getAllDomainStats",), target=TARGET),
        **where_time_goes(
            gRPC=times["empty RPC"],
            definitions_without_parsing=times["definitions"],
            all=times["ListDomains"],
        ),
    }


def measure_growing(site: Site, rounds: Mapping[int, int]) -> dict[str, Any]:
    """With more and more domains that are off; `rounds` is how often, by how many there are."""
    found: dict[str, Any] = {}
    defined = 0
    for count, times in sorted(rounds.items()):
        while defined < count:
            site.domains.define()
            defined += 1
        found[str(count)] = measure(site, times)
    per_domain_ms = [each["per_domain_ms"] for each in found.values()]
    return found | {
        "flat": {"per_domain_ms": per_domain_ms, "allowed": FLAT, "met": is_flat(per_domain_ms, FLAT)}
    }
