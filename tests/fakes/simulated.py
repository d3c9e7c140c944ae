"""A host on paper: does what the steps of a plan say to facts, so that plans and verdicts can be held together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hvsvc.domain.check_live import has_balloon
from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import Balloon, DomainFacts
from hvsvc.domain.limits import round_to_mib
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Step, StepKind
from hvsvc.domain.world import World
from hvsvc.domain.xml_document import fingerprint
from tests.fakes.worlds import guest_cpus


def started(domain: DomainFacts, definition: Definition) -> DomainFacts:
    """A new process of the definition, its guest up, its agent there and its balloon settled."""
    live = replace(
        definition,
        memory_kib=round_to_mib(definition.memory_kib),
        current_memory_kib=round_to_mib(definition.current_memory_kib),
        agent_connected=True if definition.agent_configured else None,
    )
    balloon = Balloon(live.current_memory_kib, live.current_memory_kib, live.current_memory_kib // 2, 1000)
    if not has_balloon(live):
        balloon = Balloon()
        live = replace(live, current_memory_kib=live.memory_kib)
    return replace(
        domain,
        id=(domain.id or 0) + 1,
        live=live,
        balloon=balloon,
        maximum_memory_kib=live.memory_kib,
        used_memory_kib=live.current_memory_kib,
        guest=guest_cpus(live.current_vcpus),
        guest_error=None,
    )


def applied(world: World, steps: Iterable[Step]) -> World:
    """The world after the steps, where all of them work."""
    domain = world.domain
    for step in steps:
        domain = _STEPS[step.kind](domain, step)
    return replace(world, domain=domain)


def _define(domain: DomainFacts, step: Step) -> DomainFacts:
    assert step.xml is not None
    return replace(domain, config=parse_definition(step.xml), config_xml=step.xml, etag=fingerprint(step.xml))


def _reboot(domain: DomainFacts, step: Step) -> DomainFacts:
    assert domain.config is not None
    return started(domain, domain.config)


def _set_memory(domain: DomainFacts, step: Step) -> DomainFacts:
    assert domain.live is not None
    assert has_balloon(domain.live)
    assert step.value is not None
    assert step.value <= domain.live.memory_kib
    return replace(
        domain,
        live=replace(domain.live, current_memory_kib=step.value),
        used_memory_kib=step.value,
        balloon=replace(domain.balloon, actual_kib=step.value, guest_available_kib=step.value // 2),
    )


def _set_vcpus(domain: DomainFacts, step: Step) -> DomainFacts:
    assert domain.live is not None
    assert step.value is not None
    assert domain.live.current_vcpus < step.value <= domain.live.maximum_vcpus
    online = domain.guest.online if domain.guest is not None else domain.live.current_vcpus
    return replace(
        domain,
        live=replace(domain.live, current_vcpus=step.value),
        guest=guest_cpus(step.value, min(online, step.value)),
    )


def _online(domain: DomainFacts, step: Step) -> DomainFacts:
    assert domain.live is not None
    return replace(domain, guest=guest_cpus(domain.live.current_vcpus))


def _wait(domain: DomainFacts, step: Step) -> DomainFacts:
    return domain


_STEPS = {
    StepKind.DEFINE_CONFIG: _define,
    StepKind.REBOOT: _reboot,
    StepKind.WAIT_GUEST: _wait,
    StepKind.SET_MEMORY_LIVE: _set_memory,
    StepKind.SET_VCPUS_LIVE: _set_vcpus,
    StepKind.ONLINE_GUEST_CPUS: _online,
}
