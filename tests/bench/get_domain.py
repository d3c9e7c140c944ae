"""GetDomain BASIC against an empty RPC and the raw libvirt calls for the same facts."""

from __future__ import annotations

from typing import Any

import libvirt

from hvsvc.v1.domain_pb2 import DOMAIN_VIEW_BASIC, GetDomainRequest
from hvsvc.v1.domain_pb2_grpc import DomainServiceStub
from tests.bench.comparison import compare, take_turns, where_time_goes
from tests.bench.site import Site

TARGET = 1.25
_LIVE, _CONFIG = libvirt.VIR_DOMAIN_AFFECT_LIVE, libvirt.VIR_DOMAIN_AFFECT_CONFIG
_MAXIMUM = libvirt.VIR_DOMAIN_VCPU_MAXIMUM


def read_virsh_facts(connection: libvirt.virConnect, uuid: str) -> None:
    """The calls that `virsh dominfo` and `virsh vcpucount` make."""
    domain = connection.lookupByUUIDString(uuid)
    domain.ID()
    domain.OSType()
    domain.info()
    domain.isPersistent()
    domain.autostart()
    domain.hasManagedSaveImage(0)
    if connection.getSecurityModel()[0]:
        domain.securityLabel()
    domain.messages()
    domain.vcpusFlags(_CONFIG | _MAXIMUM)
    domain.vcpusFlags(_LIVE | _MAXIMUM)
    domain.vcpusFlags(_CONFIG)
    domain.vcpusFlags(_LIVE)


def read_all_facts(connection: libvirt.virConnect, uuid: str) -> None:
    """Besides, what GetDomain tells and virsh does not: both definitions and the balloon's statistics."""
    read_virsh_facts(connection, uuid)
    domain = connection.lookupByUUIDString(uuid)
    read_definitions(domain)
    domain.memoryStats()


def read_definitions(domain: libvirt.virDomain) -> None:
    """What runs and what is stored."""
    domain.XMLDesc(libvirt.VIR_DOMAIN_XML_SECURE)
    domain.XMLDesc(libvirt.VIR_DOMAIN_XML_SECURE | libvirt.VIR_DOMAIN_XML_INACTIVE)


def measure(site: Site, uuid: str, rounds: int) -> dict[str, Any]:
    """Over the unix socket and over mutual TLS; both ratios by what counts as the raw calls."""
    domain = site.connection.lookupByUUIDString(uuid)
    request = GetDomainRequest(name=f"domains/{uuid}", view=DOMAIN_VIEW_BASIC)
    found = {}
    for transport, channel in site.channels.items():
        get = DomainServiceStub(channel).GetDomain
        times = take_turns(
            {
                "GetDomain": lambda get=get: get(request, timeout=10),  # type: ignore[misc]
                "empty RPC": site.empty[transport],
                "raw calls, virsh's facts": lambda: read_virsh_facts(site.connection, uuid),
                "raw calls, GetDomain's facts": lambda: read_all_facts(site.connection, uuid),
                "definitions": lambda: read_definitions(domain),
                "balloon": domain.memoryStats,
            },
            rounds,
        )
        found[transport] = {
            "against_its_facts": compare(
                times, "GetDomain", ("empty RPC", "raw calls, GetDomain's facts"), target=TARGET
            ),
            "against_virsh_facts": compare(
                times, "GetDomain", ("empty RPC", "raw calls, virsh's facts"), target=TARGET
            ),
            **where_time_goes(
                gRPC=times["empty RPC"],
                both_definitions=times["definitions"],
                balloon_statistics_which_QEMU_is_asked_for=times["balloon"],
                all=times["GetDomain"],
            ),
        }
    return found
