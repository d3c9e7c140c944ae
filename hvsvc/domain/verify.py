"""The verdict: whether what was read back proves that a target is reached.

COMPLETE needs every number from where it matters. What differs makes PARTIAL, what
could not be asked makes UNCONFIRMED, what waits for a reboot not asked for makes
PENDING_REBOOT; the weakest finding decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hvsvc.domain.check_live import current_memory_kib, memory_reached
from hvsvc.domain.definition import Definition
from hvsvc.domain.facts import DomainFacts
from hvsvc.domain.memory import format_kib
from hvsvc.domain.outcome import Note, Outcome
from hvsvc.domain.target import Method, Target
from hvsvc.domain.world import World
from hvsvc.errors import Reason


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a change ended, and why it is not COMPLETE."""

    outcome: Outcome
    reasons: tuple[Note, ...]


_WEIGHT = (Outcome.PARTIAL, Outcome.UNCONFIRMED, Outcome.PENDING_REBOOT)

Finding = tuple[Outcome, Note]


def verify_target(world: World, target: Target, *, rebooted: bool) -> Verdict:
    """Judges a target by `world`, read after the last step with the guest asked too."""
    findings: list[Finding] = [
        *_verify_config(world.domain, target),
        *_verify_ceiling(world.domain, target),
        *_verify_vcpus(world.domain, target, rebooted=rebooted),
        *_verify_memory(world.domain, target, rebooted=rebooted),
        *_verify_server(world),
    ]
    for outcome in _WEIGHT:
        if any(found is outcome for found, _ in findings):
            return Verdict(outcome, tuple(note for _, note in findings))
    return Verdict(Outcome.COMPLETE, ())


def _differs(what: str, wanted: object, found: object) -> Finding:
    return Outcome.PARTIAL, Note(
        Reason.TARGET_NOT_REACHED,
        f"{what}: {wanted} was asked, {found} was read back; read the domain again and repeat the request",
        {"value": what, "asked": str(wanted), "found": str(found)},
    )


def _verify_config(domain: DomainFacts, target: Target) -> Iterator[Finding]:
    config = domain.config
    current_asked = target.affect.config and target.method is not Method.RAISE_CEILING
    wanted = {
        "stored maximum vCPUs": (target.max_vcpus, config.maximum_vcpus if config else None),
        "stored maximum memory": (target.max_memory_kib, config.memory_kib if config else None),
        "stored boot vCPUs": (target.boot_vcpus, config.current_vcpus if config else None),
        "stored boot memory": (target.boot_memory_kib, config.current_memory_kib if config else None),
        "stored current vCPUs": (
            target.vcpus if current_asked else None,
            config.current_vcpus if config else None,
        ),
        "stored current memory": (
            target.memory_kib if current_asked else None,
            config.current_memory_kib if config else None,
        ),
    }
    for what, (asked, found) in wanted.items():
        # a ceiling asked with ScaleDomain is a least value: the current values may need more
        at_least = target.method is Method.SCALE_DOMAIN and "maximum" in what
        if asked is not None and asked != found and not (at_least and found is not None and found > asked):
            yield _differs(what, asked, found)


def _verify_ceiling(domain: DomainFacts, target: Target) -> Iterator[Finding]:
    config, live = domain.config, domain.live
    if config is None or target.method in (Method.SET_VCPUS, Method.SET_MEMORY):
        return
    if live is None:
        if target.method is Method.RAISE_CEILING:
            yield (
                Outcome.PENDING_REBOOT,
                Note(
                    Reason.PENDING_REBOOT, "the domain is off; its next start brings the ceiling into effect"
                ),
            )
        return
    pending = tuple(describe_pending(config, live))
    if not pending:
        return
    note = Note(
        Reason.PENDING_REBOOT,
        f"waits for a reboot: {'; '.join(pending)}; reboot at a quiet time (hvctl reboot)",
    )
    yield (Outcome.PENDING_REBOOT if target.method is Method.RAISE_CEILING else Outcome.PARTIAL, note)


def describe_pending(config: Definition, live: Definition) -> Iterator[str]:
    """Says in words which stored values only a new start of the domain brings in."""
    if config.maximum_vcpus != live.maximum_vcpus:
        yield f"maximum vCPUs {live.maximum_vcpus}, stored {config.maximum_vcpus}"
    if not memory_reached(live.memory_kib, config.memory_kib):
        yield f"maximum memory {format_kib(live.memory_kib)}, stored {format_kib(config.memory_kib)}"
    if config.topology != live.topology:
        yield f"topology {live.topology or 'none'}, stored {config.topology or 'none'}"


def _verify_vcpus(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    live = domain.live
    wants_live = target.vcpus is not None and target.affect.live
    if wants_live and (live is None or not domain.running or live.current_vcpus != target.vcpus):
        yield _differs(
            "live vCPUs", target.vcpus, live.current_vcpus if live and domain.running else domain.state.value
        )
        return
    if live is None or not (wants_live or rebooted):
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
        f"how many CPUs the guest uses is not observable: {why}; check in the guest (nproc)",
        metadata,
    )


def _verify_memory(domain: DomainFacts, target: Target, *, rebooted: bool) -> Iterator[Finding]:
    live = domain.live
    wants_live = target.memory_kib is not None and target.affect.live
    if wants_live and (live is None or not domain.running):
        yield _differs("live memory", target.memory_kib, domain.state.value)
        return
    if live is None or not (wants_live or rebooted) or live.balloon_model == "none":
        return
    wanted = target.memory_kib if wants_live else domain.config.current_memory_kib if domain.config else None
    if wanted is None:
        return
    if domain.balloon.actual_kib is None:
        yield (
            Outcome.UNCONFIRMED,
            Note(Reason.BALLOON_NOT_SETTLED, "the balloon's size could not be read; read the domain again"),
        )
    elif not memory_reached(domain.balloon.actual_kib, wanted):
        reached = current_memory_kib(domain)
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.BALLOON_BELOW_TARGET if wants_live else Reason.BALLOON_NOT_SETTLED,
                f"the balloon is at {format_kib(reached or 0)}, not at {format_kib(wanted)}: its balloon driver "
                "is missing, still busy or short of memory; check the guest, then repeat the request",
                {"askedKib": str(wanted), "actualKib": str(reached)},
            ),
        )


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
    elif world.domain.running and (server.status != "ACTIVE" or server.task_state is not None):
        yield (
            Outcome.PARTIAL,
            Note(
                Reason.SERVER_NOT_ACTIVE,
                f"the domain runs, but Nova says status {server.status}, task_state {server.task_state}; "
                "look at the server in Nova",
                {"status": server.status, "taskState": str(server.task_state)},
            ),
        )
