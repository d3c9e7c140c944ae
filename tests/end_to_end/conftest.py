"""The whole product on a private libvirtd, so that the real virsh can look at the same domains."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.guest_domains import GuestDomains
from tests.hvsvc_process import HvsvcProcess
from tests.private_libvirtd import PrivateLibvirtd

QUICK = """
[guest]
boot_timeout_s = 90
cpu_online_timeout_s = 10
balloon_timeout_s = 15
[reboot]
shutdown_timeout_s = 40
"""


@pytest.fixture(scope="module")
def hvsvc(private_libvirtd: PrivateLibvirtd) -> Iterator[HvsvcProcess]:
    """A daemon on the private libvirtd, with shorter waits than an operator would want."""
    with HvsvcProcess(private_libvirtd.uri, QUICK) as daemon:
        yield daemon


@pytest.fixture
def domains(libvirtd_domains: GuestDomains) -> GuestDomains:
    """Domains of the test; removed after it, since the host counts all that run."""
    return libvirtd_domains
