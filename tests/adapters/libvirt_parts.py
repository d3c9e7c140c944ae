"""What the tests of libvirt's adapters share."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import libvirt

from hvsvc.adapters.libvirt_domains import LibvirtDomains
from hvsvc.adapters.libvirt_settings import LibvirtSettings
from tests.qemu_embed import EmbedRoot

NOBODY = "00000000-0000-0000-0000-000000000000"
CONFIG_XML = libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE


@asynccontextmanager
async def opened(settings: LibvirtSettings) -> AsyncIterator[LibvirtDomains]:
    """The adapter, closed again."""
    domains = LibvirtDomains(settings)
    try:
        yield domains
    finally:
        await domains.close()


@contextmanager
def stopped_qemu(root: EmbedRoot, domain: libvirt.virDomain) -> Iterator[None]:
    """A QEMU that does not answer for a while."""
    pid = int((root.path / f"run/qemu/{domain.name()}.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def config_of(domain: libvirt.virDomain) -> str:
    """The stored definition."""
    return str(domain.XMLDesc(CONFIG_XML))
