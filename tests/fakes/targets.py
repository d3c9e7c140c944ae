"""The targets that most tests of operations ask for."""

from __future__ import annotations

from hvsvc.domain.target import Method, RebootMode, Target
from tests.fakes.host import FakeHost
from tests.fakes.worlds import GIB, MIB

#: `domain_xml` values of a domain with room to grow
ROOMY = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}
RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB, reboot=RebootMode.SOFT)
GROW = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB)


def mutations(fake: FakeHost) -> list[str]:
    """Names of the calls that changed something, in order."""
    return [name for name, _ in fake.calls]
