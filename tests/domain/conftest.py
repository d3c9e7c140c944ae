"""Golden results and a place to store definitions for the tests of the pure core."""

from collections.abc import Callable, Iterator

import libvirt
import pytest
from hypothesis import HealthCheck, settings

from tests.domain.golden import compare_golden

# How long an example takes is the machine's business, not a property of the code.
settings.register_profile("hvsvc", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hvsvc")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`pytest tests/domain --regenerate-golden` stores the results as they are now; read the diff after it."""
    parser.addoption("--regenerate-golden", action="store_true", help="rewrite tests/data/xml/*-out.xml")


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(case, result)` compares with tests/data/xml/<case>-out.xml."""
    regenerate = bool(request.config.getoption("--regenerate-golden", default=False))

    def check(case: str, result: str) -> None:
        compare_golden(case, result, regenerate=regenerate)

    return check


class Store:
    """Defines domains on the real QEMU driver and reads back what it stored."""

    def __init__(self, connection: libvirt.virConnect) -> None:
        self._connection = connection
        self.domains: list[libvirt.virDomain] = []

    def define(self, xml: str) -> libvirt.virDomain:
        """The stored domain; libvirt's refusal is raised as it is."""
        domain = self._connection.defineXML(xml)
        self.domains.append(domain)
        return domain

    def roundtrip(self, xml: str) -> str:
        """What libvirt stores when it is given this."""
        return inactive_xml(self.define(xml))


def inactive_xml(domain: libvirt.virDomain) -> str:
    """The stored definition with its secrets: where every edit starts (case XML-01)."""
    return str(domain.XMLDesc(libvirt.VIR_DOMAIN_XML_INACTIVE | libvirt.VIR_DOMAIN_XML_SECURE))


@pytest.fixture
def store(embed: libvirt.virConnect) -> Iterator[Store]:
    """A `Store` whose domains are destroyed and undefined after the test."""
    made = Store(embed)
    yield made
    for name in {domain.name() for domain in made.domains}:
        domain = embed.lookupByName(name)
        if domain.isActive():
            domain.destroy()
        domain.undefineFlags(libvirt.VIR_DOMAIN_UNDEFINE_KEEP_NVRAM)
