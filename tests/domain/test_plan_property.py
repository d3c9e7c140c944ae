"""What holds of every plan, whatever the domain and the target: random worlds, good and hostile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from hvsvc.domain.facts import Balloon, DomainState, GuestCpu, GuestCpus, HostFacts
from hvsvc.domain.limits import HostLimits, round_to_mib
from hvsvc.domain.outcome import Outcome
from hvsvc.domain.plan import plan_change
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Step, StepKind
from hvsvc.domain.target import Affect, GuestCpuMode, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.domain.verify import verify_target
from hvsvc.domain.verify_stored import describe_pending
from hvsvc.domain.world import World
from hvsvc.errors import GuestAgentError, HvsvcError, Reason, UnavailableError
from tests.fakes.simulated import applied, started
from tests.fakes.worlds import GIB, HOST, MIB, SERVER, facts, guest_cpus

SIZES = st.one_of(
    st.integers(256, 4096).map(lambda mib: mib * MIB), st.integers(256 * MIB, 4 * GIB), st.just(976563)
)
COUNTS = st.integers(1, 12)
TYPED = {"x86_64": "pc-q35-7.2", "i686": "pc", "aarch64": "virt", "s390x": "s390-ccw-virtio", "": ""}


@st.composite
def sizes(draw: st.DrawFn) -> dict[str, Any]:
    """The numbers of a definition that libvirt takes: current within maximum, factors that fit."""
    maximum = draw(COUNTS)
    memory = draw(SIZES)
    factors = ["", f"{maximum}x1x1", f"1x{maximum}x1", f"1x1x{maximum}"]
    cpu = draw(st.sampled_from(["", "cell"]))
    return {
        "maximum": maximum,
        "current": draw(st.integers(1, maximum)),
        "memory_kib": memory,
        "current_memory_kib": min(draw(SIZES), memory),
        "topology": draw(st.sampled_from(factors)),
        "cpu": f"<numa><cell id='0' cpus='0-{maximum - 1}' memory='{memory}'/></numa>" if cpu else "",
    }


def domains(*, hostile: bool) -> st.SearchStrategy[dict[str, Any]]:
    """What config and live have in common."""
    tied = [
        "",
        "<memoryBacking><hugepages/></memoryBacking>",
        "<memtune><hard_limit>600000</hard_limit></memtune>",
    ]
    return st.fixed_dictionaries(
        {
            "arch": st.sampled_from(list(TYPED) if hostile else ["x86_64", "i686"]),
            "acpi": st.booleans() if hostile else st.just(True),
            "balloon": st.sampled_from(["virtio", "none", ""] if hostile else ["virtio", "virtio", "none"]),
            "agent": st.sampled_from(["connected", "disconnected", None] if hostile else ["connected"]),
            "nova": st.booleans(),
            "virt_type": st.sampled_from(["kvm", "qemu"]),
            "cpuset": st.sampled_from(["", "0-3", "200"] if hostile else ["", "0-3"]),
            "extra": st.sampled_from(tied if hostile else [""]),
        }
    )


@st.composite
def worlds(draw: st.DrawFn, *, hostile: bool) -> World:
    """A domain whose stored and running numbers need not agree."""
    shape = draw(domains(hostile=hostile))
    config = {**shape, "machine": TYPED[shape["arch"]], **draw(sizes())}
    live = {**config, **draw(sizes())} if draw(st.booleans()) else config
    stored = facts({**config, "agent": "" if shape["agent"] else None}, live=live)
    assert stored.live is not None
    domain = started(stored, stored.live)
    if hostile:
        domain = _spoilt(draw, domain, stored.live.agent_connected)
    return World(
        domain=domain,
        host=draw(hosts()) if hostile else replace(HOST, online_pcpus=frozenset(range(8))),
        limits=HostLimits(),
        server=draw(
            st.sampled_from(
                [SERVER, None, replace(SERVER, task_state="migrating"), replace(SERVER, status="SHUTOFF")]
            )
        )
        if hostile
        else SERVER,
        server_error=UnavailableError(Reason.NOVA_UNAVAILABLE, "nobody answers; ask later")
        if hostile
        else None,
    )


def _spoilt(draw: st.DrawFn, domain: Any, connected: bool | None) -> Any:
    guest = draw(st.one_of(st.none(), st.integers(1, 14).map(lambda n: guest_cpus(n, n // 2))))
    odd = GuestCpus(tuple(GuestCpu(number, True, None) for number in (0, 1, 7)))
    domain = replace(
        domain,
        live=replace(domain.live, agent_connected=connected),
        guest=draw(st.sampled_from([guest, odd])),
        guest_error=GuestAgentError(Reason.AGENT_SILENT, "no answer; look at it") if guest is None else None,
        balloon=draw(st.sampled_from([domain.balloon, Balloon(), Balloon(2 * GIB, None, None, None)])),
        state=draw(st.sampled_from(list(DomainState))),
        managed_save=draw(st.booleans()),
    )
    kind = draw(st.sampled_from(["both", "off", "transient"]))
    if kind == "off":
        return replace(domain, live=None, state=DomainState.SHUT_OFF, id=None, guest=None, balloon=Balloon())
    if kind == "transient":
        return replace(domain, config=None, config_xml=None, persistent=False, etag="")
    return domain


@st.composite
def hosts(draw: st.DrawFn) -> HostFacts:
    return HostFacts(
        pcpus=draw(st.integers(1, 64)),
        memory_kib=draw(st.integers(1, 64 * GIB)),
        hypervisor_max_vcpus=draw(st.one_of(st.none(), st.integers(0, 300))),
        machine_max_vcpus=draw(st.one_of(st.none(), st.integers(0, 300))),
        others_vcpus=draw(st.integers(0, 1000)),
        others_memory_kib=draw(st.integers(0, 128 * GIB)),
        online_pcpus=draw(st.sampled_from([frozenset(), frozenset({0}), frozenset(range(8))])),
    )


@st.composite
def targets(draw: st.DrawFn, *, hostile: bool) -> Target:
    """A target as the requests can ask for it; hostile ones carry any number."""
    counts = st.integers(-2, 2**33) if hostile and draw(st.booleans()) else COUNTS
    kib = st.integers(-2, 2**60) if hostile and draw(st.booleans()) else SIZES
    method = draw(st.sampled_from(list(Method)))
    count, size = st.one_of(st.none(), counts), st.one_of(st.none(), kib)
    exact = st.builds(
        Topology, st.integers(1, 4), st.integers(1, 2), st.just(1), st.integers(1, 4), st.integers(1, 2)
    )
    policy = draw(
        st.one_of(
            st.just(TopologyPolicy()),
            st.just(TopologyPolicy(TopologyMode.GROW_CORES)),
            st.builds(
                TopologyPolicy, st.just(TopologyMode.EXACT), st.one_of(st.none(), exact) if hostile else exact
            ),
        )
    )
    reboot = draw(st.sampled_from(RebootMode))
    guest = draw(st.sampled_from(GuestCpuMode))
    match method:
        case Method.RAISE_CEILING:
            return Target(method, draw(count), draw(size), policy, draw(count), draw(size), reboot=reboot)
        case Method.SCALE_DOMAIN:
            return Target(
                method,
                draw(count),
                draw(size),
                policy,
                vcpus=draw(count),
                memory_kib=draw(size),
                reboot=reboot,
                guest_cpus=guest,
            )
        case Method.SET_VCPUS:
            return Target(method, vcpus=draw(counts), affect=draw(st.sampled_from(Affect)), guest_cpus=guest)
        case Method.SET_MEMORY:
            return Target(method, memory_kib=draw(kib), affect=draw(st.sampled_from(Affect)))
        case Method.REBOOT_DOMAIN:
            return Target(method, reboot=RebootMode.SOFT)


@given(worlds(hostile=True), targets(hostile=True))
@settings(max_examples=200, deadline=None)
def test_a_plan_never_raises_and_every_refusal_says_the_next_step(there: World, target: Target) -> None:
    plan = plan_change(there, target)
    for error in plan.blockers:
        assert isinstance(error, HvsvcError)
        assert ";" in error.message, error.message
    if not plan.blockers:
        for step in plan.steps:
            assert (step.xml is not None) == (step.kind is StepKind.DEFINE_CONFIG)
            if step.xml is not None:
                assert parse_definition(step.xml).uuid == there.domain.uuid
            if step.kind is StepKind.SET_MEMORY_LIVE:
                assert step.value == round_to_mib(step.value or 0) > 0
    verify_target(there, plan.target, rebooted=False)


@given(worlds(hostile=True), targets(hostile=True))
@settings(max_examples=150, deadline=None)
def test_a_plan_reboots_only_with_consent(there: World, target: Target) -> None:
    plan = plan_change(there, target)
    if plan.needs_reboot and not plan.blockers:
        assert target.reboot is RebootMode.SOFT
        assert target.method in (Method.RAISE_CEILING, Method.SCALE_DOMAIN, Method.REBOOT_DOMAIN)
        assert there.domain.running
        assert there.domain.config is not None
        assert there.domain.nova is None or there.server == SERVER


@given(worlds(hostile=False), targets(hostile=False))
@settings(max_examples=400, deadline=None)
def test_xml_14_a_plan_carried_out_leaves_nothing_to_plan_and_is_complete(
    there: World, target: Target
) -> None:
    plan = plan_change(there, target)
    if plan.blockers:
        event(f"refused: {plan.blockers[0].reason.value}")
        return
    done = applied(there, plan.steps)
    again = plan_change(done, target)
    assert again.blockers == ()
    if target.method is not Method.REBOOT_DOMAIN:
        moving = [step for step in again.steps if not _is_order_to_stay(step, done, target)]
        assert (moving, again.xml_diff) == ([], "")
    assert done.domain.guest is not None
    assert done.domain.live is not None
    agreeing = replace(done, domain=replace(done.domain, guest=guest_cpus(done.domain.live.current_vcpus)))
    verdict = verify_target(agreeing, plan.target, rebooted=plan.needs_reboot)
    event(f"{target.method.value} {verdict.outcome.value}")
    if verdict.outcome is not Outcome.COMPLETE:
        assert verdict.outcome is Outcome.PENDING_REBOOT, verdict.reasons
        assert _only_stored(agreeing, plan.target)


def _is_order_to_stay(step: Step, there: World, target: Target) -> bool:
    """Whether it tells the balloon once more where to be: what is stored says something else."""
    live_only = target.affect is Affect.LIVE and step.kind is StepKind.SET_MEMORY_LIVE
    return live_only and step.value == there.domain.balloon.actual_kib


def _only_stored(there: World, target: Target) -> bool:
    """Whether the target asks something of the stored definition that the running domain may lack."""
    if target.method is Method.RAISE_CEILING:
        config, live = there.domain.config, there.domain.live
        assert config is not None
        assert live is not None
        boot = target.boot_vcpus is not None or target.boot_memory_kib is not None
        return boot or (target.reboot is RebootMode.NEVER and bool(list(describe_pending(config, live))))
    return target.affect is Affect.CONFIG


@given(worlds(hostile=False), targets(hostile=False))
@settings(max_examples=200, deadline=None)
def test_what_follows_a_reboot_was_forecast_right(there: World, target: Target) -> None:
    plan = plan_change(there, replace(target, reboot=RebootMode.SOFT))
    if plan.blockers or not plan.needs_reboot:
        return
    fresh = plan_change(applied(there, plan.certain), replace(plan.target, reboot=RebootMode.NEVER))
    if target.method is Method.SCALE_DOMAIN:
        forecast = plan.steps[len(plan.certain) :]
        assert fresh.blockers == ()
        assert [(step.kind, step.value) for step in fresh.steps] == [
            (step.kind, step.value) for step in forecast
        ]
        assert [step.xml for step in fresh.steps] == [step.xml for step in forecast]
