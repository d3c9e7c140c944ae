"""The verdict: whether what was read back proves that a target is reached.

COMPLETE needs every number from where it matters. What differs makes PARTIAL, what
could not be asked makes UNCONFIRMED, what waits for a reboot not asked for makes
PENDING_REBOOT; the weakest finding decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hvsvc.domain.check_live import has_balloon, memory_reached
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.plan_allocation import verify_allocation
from hvsvc.domain.target import Method, Target
from hvsvc.domain.verify_stored import Finding, differs, verify_ceiling, verify_config
from hvsvc.domain.world import World
from hvsvc.errors import Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a change ended, and why it is not COMPLETE."""

    outcome: Outcome
    reasons: tuple[Note, ...]


_WEIGHT = (Outcome.PARTIAL, Outcome.UNCONFIRMED, Outcome.PENDING_REBOOT)


def verify_target(world: World, target: Target, *, rebooted: bool) -> Verdict:
    """Judges a target by `world`, read after the last step with the guest asked too."""
    findings: list[Finding] = [
        *_verify_started(world.domain, target, rebooted=rebooted),
        *verify_config(world.domain, target),
        *verify_ceiling(world.domain, target, rebooted=rebooted),
        *_verify_vcpus(world.domain, target, rebooted=rebooted),
        *_verify_memory(world.domain, target, rebooted=rebooted),
        *_verify_server(world),
        *verify_allocation(world),
    ]
    for outcome in _WEIGHT:
        if any(found is outcome for found, _ in findings):
            return Verdict(outcome, tuple(note for _, note in findings))
    return Verdict(Outcome.COMPLETE, ())


def _verify_started(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    if target.method is Method.REBOOT_DOMAIN and not rebooted:
        yield differs("reboot", "one", "none")
    if rebooted and domain.config is None:
        yield differs("stored definition", "one", "none")
    if (rebooted or _wants_live(target)) and not domain.running:
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.DOMAIN_NOT_RUNNING,
                f"the domain is {domain.state.value}, so what it and its guest have cannot be read back; bring it to "
                "run, then repeat the request",
                {"state": domain.state.value},
            ),
        )


def _wants_live(target: Target) -> bool:
    return target.affect.live and (target.vcpus is not None or target.memory_kib is not None)


def _verify_vcpus(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    live = domain.live
    wanted = target.vcpus if target.affect.live else None
    if wanted is None and rebooted and domain.config is not None:
        wanted = domain.config.current_vcpus
    if live is None or not domain.running or (wanted is None and not rebooted):
        return
    if wanted is not None and live.current_vcpus != wanted:
        yield differs("live vCPUs", wanted, live.current_vcpus)
        return
    if domain.guest is None:
        yield (Outcome.UNCONFIRMED, _guest_unknown(domain))
    elif domain.guest.online != live.current_vcpus:
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.GUEST_CPUS_OFFLINE,
                f"the domain has {live.current_vcpus} vCPUs; the guest sees {domain.guest.present} and uses "
                f"{domain.guest.online}; bring the rest online in the guest, or ask for it "
                "(hvctl setvcpus --online all)",
                {
                    "currentLive": str(live.current_vcpus),
                    "guestPresent": str(domain.guest.present),
                    "guestOnline": str(domain.guest.online),
                    "offlineIds": ",".join(map(str, sorted(domain.guest.offline_ids))),
                },
            ),
        )


def _guest_unknown(domain: DomainFacts) -> Note:
    if domain.guest_error is not None:
        why, metadata = domain.guest_error.message, {"agent": domain.guest_error.reason.value}
    else:
        why, metadata = "the guest agent was not asked", {}
    return Note(
        Reason.GUEST_CPUS_UNKNOWN,
        f"how many CPUs the guest uses is not observable; check in the guest (nproc): {why}",
        metadata,
    )


def _verify_memory(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    live = domain.live
    asked = target.memory_kib if target.affect.live else None
    if live is None or not domain.running or (asked is None and not rebooted):
        return
    if not has_balloon(live):
        # the guest has all of the maximum, whatever the current value says (case MEM-02)
        named = asked if asked is not None else target.boot_memory_kib
        if named is not None and not memory_reached(live.memory_kib, named):
            yield differs("memory without a balloon", format_kib(named), format_kib(live.memory_kib))
        return
    wanted = asked
    if wanted is None and domain.config is not None:
        wanted = domain.config.current_memory_kib
    if wanted is None:
        return
    actual_kib = domain.balloon.actual_kib
    if actual_kib is None:
        yield (
            Outcome.UNCONFIRMED,
            Note(Reason.BALLOON_NOT_SETTLED, "the balloon's size could not be read; read the domain again"),
        )
    elif not memory_reached(actual_kib, wanted):
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.BALLOON_BELOW_TARGET if asked is not None else Reason.BALLOON_NOT_SETTLED,
                f"the balloon is at {format_kib(actual_kib)}, not at {format_kib(wanted)}: its balloon driver is "
                "missing, still busy or short of memory; check the guest, then repeat the request",
                {"askedKib": str(wanted), "actualKib": str(actual_kib)},
            ),
        )


#: Nova's statuses of a server whose domain is not running, with the definition the server goes on with
_STOPPED_STATUSES = frozenset({"PAUSED", "SUSPENDED", "SHUTOFF"})


def _verify_server(world: World) -> Iterator[Finding]:
    if world.domain.nova is None:
        return
    server = world.server
    if server is None:
        why = world.server_error.message if world.server_error is not None else "Nova was not asked"
        yield (
            Outcome.UNCONFIRMED,
            Note(Reason.NOVA_STATE_UNKNOWN, f"Nova could not confirm the server's state: {why}"),
        )
        return
    fitting = frozenset({"ACTIVE"}) if world.domain.running else _STOPPED_STATUSES
    if server.status not in fitting or server.task_state is not None:
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.SERVER_NOT_ACTIVE,
                f"the domain is {world.domain.state.value}, but Nova says status {server.status}, task_state "
                f"{server.task_state}; look at the server in Nova",
                {"status": server.status, "taskState": str(server.task_state)},
            ),
        )
