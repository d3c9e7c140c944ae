"""Plans as a whole: which steps, in which order, what each costs, what forbids them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.limits import HostLimits
from hvsvc.domain.plan import Plan, plan_change
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.steps import Effect, StepKind
from hvsvc.domain.target import Affect, Method, RebootMode, Target
from hvsvc.domain.topology import Topology, TopologyMode, TopologyPolicy
from hvsvc.domain.world import World
from hvsvc.errors import AbortedError, FailedPreconditionError, Reason, UnavailableError
from tests.fakes.worlds import GIB, HOST, MIB, SERVER, facts, guest_cpus, world

RAISE = Target(Method.RAISE_CEILING, max_vcpus=8, max_memory_kib=2 * GIB)
SCALE = Target(Method.SCALE_DOMAIN, vcpus=8, memory_kib=GIB)
ROOMY = {"maximum": 8, "current": 2, "memory_kib": 2 * GIB, "current_memory_kib": 512 * MIB}


def kinds(plan: Plan) -> list[StepKind]:
    return [step.kind for step in plan.steps]


def reasons(plan: Plan) -> list[Reason]:
    return [error.reason for error in plan.blockers]


def test_raise_without_consent_is_one_define() -> None:
    plan = plan_change(world(facts()), RAISE)
    assert kinds(plan) == [StepKind.DEFINE_CONFIG]
    assert plan.steps[0].effect is Effect.REBOOT
    assert plan.blockers == ()
    xml = plan.steps[0].xml
    assert xml is not None
    new = parse_definition(xml)
    assert (new.maximum_vcpus, new.current_vcpus) == (8, 2)
    assert (new.memory_kib, new.current_memory_kib) == (2 * GIB, 512 * MIB)
    assert new.topology == Topology(8)
    assert "-" in plan.xml_diff
    assert "+" in plan.xml_diff
    assert plan.topology == Topology(8)


def test_raise_with_consent_reboots_and_waits() -> None:
    plan = plan_change(world(facts()), replace(RAISE, reboot=RebootMode.SOFT))
    assert kinds(plan) == [StepKind.DEFINE_CONFIG, StepKind.REBOOT, StepKind.WAIT_GUEST]
    assert plan.needs_reboot
    assert plan.certain == plan.steps


def test_a_pending_ceiling_needs_only_the_reboot() -> None:
    domain = facts(ROOMY, live={})
    plan = plan_change(world(domain), replace(RAISE, reboot=RebootMode.SOFT))
    assert kinds(plan) == [StepKind.REBOOT, StepKind.WAIT_GUEST]
    assert plan.xml_diff == ""
    assert kinds(plan_change(world(domain), RAISE)) == []


def test_xml_14_the_same_target_again_plans_nothing() -> None:
    domain = facts(ROOMY)
    again = replace(RAISE, reboot=RebootMode.SOFT)
    assert plan_change(world(domain), again) == Plan(again, domain.etag, (), topology=Topology(8))
    grown = facts({**ROOMY, "current": 8, "current_memory_kib": GIB})
    assert plan_change(world(grown), SCALE).steps == ()


def test_nothing_to_do_is_not_refused_because_nova_is_busy() -> None:
    domain = facts({**ROOMY, "nova": True})
    busy = replace(SERVER, task_state="rebooting")
    assert plan_change(world(domain, server=busy), RAISE).blockers == ()


@pytest.mark.parametrize("server", [replace(SERVER, status="SHUTOFF"), None], ids=["SHUTOFF", "not asked"])
@pytest.mark.parametrize(
    "target",
    [
        RAISE,
        Target(Method.SCALE_DOMAIN, max_vcpus=8),
        Target(Method.SET_VCPUS, vcpus=2, affect=Affect.CONFIG),
    ],
    ids=lambda target: target.method.value,
)
def test_rb_03_what_is_stored_already_of_a_nova_server_that_is_off_is_refused_as_any_change_of_it(
    server: ServerFacts | None, target: Target
) -> None:
    off = facts({**ROOMY, "nova": True}, running=False)
    plan = plan_change(world(off, server=server), target)
    assert (plan.steps, reasons(plan)) == ((), [Reason.NOVA_START_DISCARDS])
    plain = plan_change(world(facts(ROOMY, running=False)), target)
    assert (plain.steps, plain.blockers) == ((), ())


def test_what_is_stored_already_of_a_suspended_server_is_there_when_it_is_resumed() -> None:
    suspended = facts({**ROOMY, "nova": True}, running=False, managed_save=True)
    there = world(suspended, server=replace(SERVER, status="SUSPENDED"))
    assert plan_change(there, RAISE).blockers == ()


def test_a_domain_that_is_off_gets_ceiling_and_size_by_one_define() -> None:
    off = facts({"maximum": 4, "current": 4, "topology": "4x1x1"}, running=False)
    for target, current in ((SCALE, 8), (replace(SCALE, vcpus=2, max_vcpus=8), 2)):
        plan = plan_change(world(off), target)
        assert kinds(plan) == [StepKind.DEFINE_CONFIG]
        assert reasons(plan) == [Reason.DOMAIN_NOT_RUNNING]
        stored = parse_definition(plan.steps[0].xml or "")
        assert (stored.maximum_vcpus, stored.current_vcpus) == (8, current)


def test_rb_08_scale_above_the_ceiling_is_refused_without_consent() -> None:
    plan = plan_change(world(facts()), SCALE)
    assert plan.needs_reboot
    assert reasons(plan) == [Reason.REBOOT_REQUIRED]
    message = plan.blockers[0].message
    assert "2 to 8" in message
    assert "--reboot soft" in message
    assert plan.blockers[0].metadata["liveCeiling"] == "2 vCPUs and 512 MiB"


def test_scale_with_consent_raises_reboots_then_grows_memory_first() -> None:
    plan = plan_change(world(facts()), replace(SCALE, reboot=RebootMode.SOFT))
    assert plan.blockers == ()
    assert kinds(plan) == [
        StepKind.DEFINE_CONFIG,
        StepKind.REBOOT,
        StepKind.WAIT_GUEST,
        StepKind.SET_MEMORY_LIVE,
        StepKind.SET_VCPUS_LIVE,
        StepKind.ONLINE_GUEST_CPUS,
        StepKind.DEFINE_CONFIG,
    ]
    assert [step.kind for step in plan.certain] == kinds(plan)[:3]
    assert [step.effect for step in plan.steps] == [Effect.REBOOT] * 2 + [Effect.LIVE] * 5


def test_mem_02_no_reboot_for_memory_that_a_domain_without_a_balloon_will_not_have_after_it() -> None:
    bare = {"memory_kib": GIB, "current_memory_kib": 512 * MIB, "balloon": "none"}
    target = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=512 * MIB, reboot=RebootMode.SOFT)
    plan = plan_change(world(facts(bare)), target)
    assert Reason.NO_BALLOON in [blocker.reason for blocker in plan.blockers]
    whole = plan_change(world(facts(bare)), replace(target, memory_kib=GIB))
    assert StepKind.SET_MEMORY_LIVE not in [step.kind for step in whole.steps]


def test_scale_within_the_ceiling_never_reboots_even_with_consent() -> None:
    plan = plan_change(world(facts(ROOMY)), replace(SCALE, reboot=RebootMode.SOFT))
    assert kinds(plan) == [
        StepKind.SET_MEMORY_LIVE,
        StepKind.SET_VCPUS_LIVE,
        StepKind.ONLINE_GUEST_CPUS,
        StepKind.DEFINE_CONFIG,
    ]
    assert not plan.needs_reboot
    assert [step.value for step in plan.steps[:2]] == [GIB, 8]
    stored = plan.steps[-1].xml
    assert stored is not None
    assert parse_definition(stored).current_vcpus == 8
    assert parse_definition(stored).current_memory_kib == GIB


def test_scale_keeps_a_higher_stored_ceiling() -> None:
    domain = facts({**ROOMY, "maximum": 12}, live={})
    plan = plan_change(world(domain), replace(SCALE, reboot=RebootMode.SOFT))
    assert kinds(plan)[:2] == [StepKind.REBOOT, StepKind.WAIT_GUEST]
    assert not any(step.xml for step in plan.certain)


def test_scale_that_reboots_anyway_lowers_boot_values_by_the_same_define() -> None:
    domain = facts({"maximum": 4, "current": 4, "topology": "4x1x1"})
    target = Target(Method.SCALE_DOMAIN, vcpus=2, memory_kib=GIB, reboot=RebootMode.SOFT)
    plan = plan_change(world(domain), target)
    assert plan.blockers == ()
    first = plan.steps[0].xml
    assert first is not None
    assert parse_definition(first).current_vcpus == 2
    assert StepKind.SET_VCPUS_LIVE not in kinds(plan)


def test_rb_09_live_requests_are_judged_by_the_live_ceiling_with_a_hint() -> None:
    domain = facts(ROOMY, live={})
    plan = plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4))
    assert reasons(plan) == [Reason.ABOVE_LIVE_CEILING]
    assert plan.blockers[0].metadata == {"asked": "4", "ceiling": "2", "pending": "true"}
    assert "waits for a reboot" in plan.blockers[0].message


def test_cpu_01_mem_04_above_every_ceiling_names_have_want_and_ceiling() -> None:
    plan = plan_change(world(facts()), Target(Method.SET_VCPUS, vcpus=5))
    assert reasons(plan) == [Reason.ABOVE_LIVE_CEILING, Reason.ABOVE_CONFIG_CEILING]
    assert plan.blockers[0].metadata["ceiling"] == "2"
    plan = plan_change(world(facts()), Target(Method.SET_MEMORY, memory_kib=GIB))
    assert reasons(plan) == [Reason.ABOVE_LIVE_CEILING, Reason.ABOVE_CONFIG_CEILING]
    assert plan.blockers[0].metadata["ceiling"] == "512 MiB"


@pytest.mark.parametrize(
    ("affect", "expected"),
    [
        (Affect.LIVE, [StepKind.SET_VCPUS_LIVE, StepKind.ONLINE_GUEST_CPUS]),
        (Affect.CONFIG, [StepKind.DEFINE_CONFIG]),
        (
            Affect.LIVE_AND_CONFIG,
            [StepKind.SET_VCPUS_LIVE, StepKind.ONLINE_GUEST_CPUS, StepKind.DEFINE_CONFIG],
        ),
    ],
)
def test_cpu_10_affect_says_where(affect: Affect, expected: list[StepKind]) -> None:
    plan = plan_change(world(facts(ROOMY)), Target(Method.SET_VCPUS, vcpus=4, affect=affect))
    assert kinds(plan) == expected


def test_mem_08_sizes_are_rounded_up_to_mib_and_said() -> None:
    plan = plan_change(world(facts(ROOMY)), Target(Method.SET_MEMORY, memory_kib=GIB - 1))
    assert plan.target.memory_kib == GIB
    assert [note.reason for note in plan.warnings] == [Reason.ROUNDED]


def test_xml_13_a_transient_domain_takes_live_values_only() -> None:
    domain = facts(ROOMY)
    domain = replace(domain, config=None, config_xml=None, persistent=False)
    assert reasons(plan_change(world(domain), RAISE)) == [Reason.TRANSIENT_DOMAIN]
    assert reasons(plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4))) == [Reason.TRANSIENT_DOMAIN]
    live_only = plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4, affect=Affect.LIVE))
    assert live_only.blockers == ()
    assert kinds(live_only) == [StepKind.SET_VCPUS_LIVE, StepKind.ONLINE_GUEST_CPUS]


def test_rb_06_nothing_live_on_a_domain_that_is_off() -> None:
    domain = facts(ROOMY, running=False)
    assert reasons(plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4))) == [
        Reason.DOMAIN_NOT_RUNNING
    ]
    stored = plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4, affect=Affect.CONFIG))
    assert kinds(stored) == [StepKind.DEFINE_CONFIG]
    assert stored.blockers == ()
    assert Reason.DOMAIN_NOT_RUNNING in reasons(plan_change(world(domain), SCALE))
    assert Reason.DOMAIN_NOT_RUNNING in reasons(
        plan_change(world(facts(running=False)), Target(Method.REBOOT_DOMAIN))
    )


def test_a_managed_save_image_forbids_edits() -> None:
    domain = facts(running=False, managed_save=True)
    assert reasons(plan_change(world(domain), RAISE)) == [Reason.MANAGED_SAVE_IMAGE]


def test_a_saved_image_does_not_forbid_what_changes_nothing() -> None:
    domain = facts(ROOMY, running=False, managed_save=True)
    assert plan_change(world(domain), RAISE).blockers == ()


NOVA_DOMAIN = facts({"nova": True})


@pytest.mark.parametrize(
    ("server", "error", "reason"),
    [
        (replace(SERVER, task_state="resize_prep"), AbortedError, Reason.SERVER_BUSY),
        (replace(SERVER, status="VERIFY_RESIZE"), FailedPreconditionError, Reason.SERVER_NOT_ACTIVE),
        (replace(SERVER, status="RESCUE"), FailedPreconditionError, Reason.SERVER_NOT_ACTIVE),
        (replace(SERVER, status="SHUTOFF"), FailedPreconditionError, Reason.NOVA_START_DISCARDS),
        (replace(SERVER, status="PAUSED"), FailedPreconditionError, Reason.SERVER_NOT_ACTIVE),
        (replace(SERVER, locked=True), FailedPreconditionError, Reason.SERVER_LOCKED),
    ],
)
def test_nova_states_that_forbid_the_reboot(server: object, error: type[Exception], reason: Reason) -> None:
    plan = plan_change(world(NOVA_DOMAIN, server=server), replace(RAISE, reboot=RebootMode.SOFT))
    assert reasons(plan) == [reason]
    assert type(plan.blockers[0]) is error


def test_a_locked_server_may_still_grow_without_a_reboot() -> None:
    domain = facts({**ROOMY, "nova": True})
    assert plan_change(world(domain, server=replace(SERVER, locked=True)), SCALE).blockers == ()


def test_nova_not_reachable_forbids_the_reboot_and_warns_of_the_rest() -> None:
    down = UnavailableError(Reason.NOVA_UNAVAILABLE, "nobody answers")
    there = world(NOVA_DOMAIN, server=None, server_error=down)
    assert plan_change(there, replace(RAISE, reboot=RebootMode.SOFT)).blockers == (down,)
    plan = plan_change(there, RAISE)
    assert plan.blockers == ()
    assert [note.reason for note in plan.warnings] == [Reason.NOVA_STATE_UNKNOWN, Reason.LOST_BY_HARD_REBOOT]


def test_rb_04_no_reboot_where_the_guest_cannot_be_asked_to_shut_down() -> None:
    domain = facts({"acpi": False, "agent": None})
    plan = plan_change(world(domain), Target(Method.REBOOT_DOMAIN))
    assert reasons(plan) == [Reason.NO_ACPI]
    with_agent = facts({"acpi": False})
    assert plan_change(world(with_agent), Target(Method.REBOOT_DOMAIN)).blockers == ()


def test_every_blocker_of_a_plan_is_told_once() -> None:
    pins = "<cputune><vcpupin vcpu='0' cpuset='1'/></cputune><memoryBacking><hugepages/></memoryBacking>"
    plan = plan_change(world(facts({"extra": pins})), replace(RAISE, max_vcpus=400))
    found = reasons(plan)
    assert found[:2] == [Reason.PINNED, Reason.HUGEPAGES]
    assert Reason.ABOVE_MACHINE_LIMIT in found
    assert len(found) == len(set(found))


def test_topology_policy_reaches_the_edit() -> None:
    domain = facts({"maximum": 4, "current": 4, "topology": "2x2x1"})
    target = replace(RAISE, max_memory_kib=None, topology=TopologyPolicy(TopologyMode.GROW_CORES))
    xml = plan_change(world(domain), target).steps[0].xml
    assert xml is not None
    assert parse_definition(xml).topology == Topology(2, cores=4)


def test_capacity_counts_the_hosts_other_domains() -> None:
    tight = HostLimits(vcpu_overcommit_ratio=2.0)
    plan = plan_change(world(facts(ROOMY), limits=tight), Target(Method.SET_VCPUS, vcpus=7))
    assert reasons(plan) == [Reason.ABOVE_HOST_CAPACITY]
    assert plan.blockers[0].metadata == {"asked": "7", "highest": "6", "others": "10"}
    assert plan_change(world(facts(ROOMY), limits=tight), Target(Method.SET_VCPUS, vcpus=6)).blockers == ()


def test_a_guest_that_gave_no_sign_is_waited_for_before_it_is_given_vcpus() -> None:
    from hvsvc.domain.facts import Balloon

    domain = facts({**ROOMY, "agent": "disconnected"}, balloon=Balloon(2 * GIB))
    plan = plan_change(world(domain), Target(Method.SET_VCPUS, vcpus=4, affect=Affect.LIVE))
    assert kinds(plan) == [StepKind.WAIT_GUEST, StepKind.SET_VCPUS_LIVE, StepKind.ONLINE_GUEST_CPUS]


def test_online_all_is_a_step_of_its_own_where_the_count_is_right() -> None:
    from hvsvc.domain.target import GuestCpuMode

    domain = facts({**ROOMY, "current": 8}, guest=guest_cpus(8, 2))
    target = Target(Method.SET_VCPUS, vcpus=8)
    assert plan_change(world(domain), target).steps == ()
    assert kinds(plan_change(world(domain), replace(target, guest_cpus=GuestCpuMode.ALL))) == [
        StepKind.ONLINE_GUEST_CPUS
    ]


def test_plan_is_pure() -> None:
    there: World = world(facts())
    assert plan_change(there, RAISE) == plan_change(there, RAISE)
    assert there.host == HOST
