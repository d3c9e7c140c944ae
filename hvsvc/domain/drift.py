"""Drift: what was asked for, compared with what is there. Judged afresh at each look, never kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from hvsvc.domain.check_live import current_memory_kib, has_balloon
from hvsvc.domain.definition import Definition
from hvsvc.domain.desired import DesiredState
from hvsvc.domain.facts import DomainFacts, ServerFacts
from hvsvc.domain.limits import MIB_KIB, round_to_mib
from hvsvc.domain.memory import format_kib
from hvsvc.errors import HvsvcError, NotFoundError


class DriftStatus(Enum):
    """How desired and found compare; the first that applies, from the end of this list up."""

    IN_SYNC = "in_sync"
    PENDING_REBOOT = "pending_reboot"
    CEILING_LOST = "ceiling_lost"
    SHRUNK = "shrunk"
    FLAVOR_CHANGED = "flavor_changed"
    MOVED = "moved"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Drift:
    """One comparison; `differences` name both values each."""

    status: DriftStatus
    differences: tuple[str, ...] = ()
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class LostCeiling:
    """What of the desired ceiling the stored definition lacks; None where it has it, or more."""

    max_vcpus: int | None = None
    max_memory_kib: int | None = None
    #: the maximum is there, the exact factors asked for are not
    topology: bool = False

    def __bool__(self) -> bool:
        return self.topology or self.max_vcpus is not None or self.max_memory_kib is not None


def judge_drift(desired: DesiredState, facts: DomainFacts) -> Drift:
    """Compares the record of a domain that is on this host with it.

    The order of the checks is the order in which one explains the next: a resize
    explains a lost ceiling, a lost ceiling explains a small live one.
    """
    if desired.superseded_by(facts):
        return _flavor_changed(desired, facts)
    if differences := tuple(_ceiling_differences("stored", desired, facts.config)):
        return Drift(DriftStatus.CEILING_LOST, differences, _regain(facts))
    if facts.live is not None and (differences := tuple(_ceiling_differences("live", desired, facts.live))):
        return Drift(
            DriftStatus.PENDING_REBOOT,
            differences,
            "reboot it softly when the guest may be (hvctl reboot), which also grows it to the recorded size",
        )
    if differences := tuple(_current_differences(desired, facts)):
        return Drift(DriftStatus.SHRUNK, differences, _regrow(desired, facts))
    if differences := tuple(_still_above(desired, facts)):
        return Drift(
            DriftStatus.PENDING_REBOOT, differences, "reboot it softly when the guest may be (hvctl reboot)"
        )
    return Drift(DriftStatus.IN_SYNC, (), _OFF if _starts_anew(facts) else "")


def judge_absence(desired: DesiredState, server: ServerFacts | None, error: HvsvcError | None) -> Drift:
    """Says why a recorded domain is not on this host, by what Nova answered; never guesses.

    :param server: Nova's answer; None where it gave none, with `error` then saying why.
    """
    if not desired.is_server:
        return Drift(
            DriftStatus.GONE,
            ("the domain was undefined, and is not Nova's",),
            "drop the record (hvctl forget), or define the domain again",
        )
    if server is None:
        return _unanswered(desired, error)
    if server.status == "DELETED":
        return Drift(DriftStatus.GONE, ("Nova says the server is deleted",), _DROPS_ITSELF)
    if server.task_state is not None:
        return Drift(
            DriftStatus.UNKNOWN,
            (f"Nova is at work on the server (task_state {server.task_state})",),
            "look again when it has finished",
        )
    if server.host is not None and server.host == desired.nova_host:
        return Drift(
            DriftStatus.UNKNOWN,
            (
                f"Nova says the server is here ({server.host}) in status {server.status}, libvirt has no such domain",
            ),
            "let Nova make the domain anew (openstack server reboot --hard), unless the server is to be deleted",
        )
    if server.status != _ON_NO_HOST and None in (server.host, desired.nova_host):
        return _not_told(server)
    where = f"on host {server.host}" if server.host is not None else "on no host"
    return Drift(
        DriftStatus.MOVED,
        (f"Nova says the server is {where}, in status {server.status}",),
        (_ELSEWHERE if server.host is not None else _NOWHERE)
        + "; the record here is for its return; drop it with hvctl forget",
    )


def judge_unread(error: HvsvcError) -> Drift:
    """Says why a domain that is on this host could not be compared."""
    return Drift(
        DriftStatus.UNKNOWN, (f"the domain could not be read: {error.message}",), "look again when it answers"
    )


#: the one status in which Nova has a server on no host, and so names none to an admin either
_ON_NO_HOST = "SHELVED_OFFLOADED"
_ELSEWHERE = "ask the hvsvc of the host that runs it"
_NOWHERE = "nothing until it is unshelved, for which Nova makes the definition anew"
#: of a server that has in its stored definition what was asked for
_OFF = "nothing while the server is off; its start makes the definition anew, and the ceiling is lost: look again then"
_DROPS_ITSELF = "nothing: the record is dropped at the next look at it"


def _not_told(server: ServerFacts) -> Drift:
    """The server is there, and whether it is here cannot be seen: Nova tells hosts to an admin's credential only."""
    if server.host is None:
        what = f"Nova has the server in status {server.status}, and does not tell hvsvc's credential on which host"
    else:
        what = f"Nova says the server is on host {server.host}, in status {server.status}; whether that is this host "
        what += "was not known when the size was asked for"
    return Drift(
        DriftStatus.UNKNOWN,
        (f"the domain is not on this host: {what}",),
        "look in Nova where the server is (openstack server show, as admin); ask the hvsvc there; the record here is "
        "for its return; drop it with hvctl forget",
    )


def _unanswered(desired: DesiredState, error: HvsvcError | None) -> Drift:
    if isinstance(error, NotFoundError) and desired.seen_in_nova:
        return Drift(DriftStatus.GONE, ("Nova no longer knows the server",), _DROPS_ITSELF)
    why = error.message if error is not None else "this host has no Nova credential"
    return Drift(
        DriftStatus.UNKNOWN,
        (f"the domain is not on this host, and Nova did not say why: {why}",),
        "look for the server in Nova (openstack server show); drop the record with hvctl forget if it is deleted",
    )


def find_lost_ceiling(desired: DesiredState, config: Definition | None) -> LostCeiling:
    """What a re-apply must write; nothing for a transient domain, which has nothing to write to."""
    if config is None:
        return LostCeiling()
    vcpus, memory_kib = desired.max_vcpus, desired.max_memory_kib
    lost_vcpus = vcpus if vcpus is not None and config.maximum_vcpus < vcpus else None
    return LostCeiling(
        max_vcpus=lost_vcpus,
        max_memory_kib=memory_kib
        if memory_kib is not None and round_to_mib(config.memory_kib) < memory_kib
        else None,
        topology=lost_vcpus is None and _other_factors(desired, config),
    )


def _other_factors(desired: DesiredState, found: Definition) -> bool:
    """Whether just the maximum asked for is there, but not with the factors it was asked with."""
    exact = desired.topology.exact
    return exact is not None and found.maximum_vcpus == exact.product and found.topology != exact


def _ceiling_differences(side: str, desired: DesiredState, found: Definition | None) -> Iterator[str]:
    if found is None:
        yield f"{side} definition: one was asked to have a ceiling, the domain is transient and has none"
        return
    vcpus, memory_kib = desired.max_vcpus, desired.max_memory_kib
    if vcpus is not None and found.maximum_vcpus < vcpus:
        yield f"{side} maximum vCPUs: {vcpus} asked, {found.maximum_vcpus} found"
    if memory_kib is not None and round_to_mib(found.memory_kib) < memory_kib:
        yield f"{side} maximum memory: {format_kib(memory_kib)} asked, {format_kib(found.memory_kib)} found"
    if _other_factors(desired, found):
        yield f"{side} topology: {desired.topology.exact} asked, {found.topology or 'none'} found"


def _current_differences(desired: DesiredState, facts: DomainFacts) -> Iterator[str]:
    config, live, guest = facts.config, facts.live, facts.guest
    for what, count in (
        ("stored current vCPUs", config.current_vcpus if config else None),
        ("live current vCPUs", live.current_vcpus if live else None),
        ("guest CPUs online", guest.online if guest else None),
    ):
        if desired.vcpus is not None and count is not None and count < desired.vcpus:
            yield f"{what}: {desired.vcpus} asked, {count} found"
    for what, size_kib in (
        ("stored current memory", config.current_memory_kib if config else None),
        ("live memory", _live_memory_kib(facts)),
    ):
        wanted = desired.memory_kib
        if wanted is not None and size_kib is not None and size_kib <= wanted - MIB_KIB:
            yield f"{what}: {format_kib(wanted)} asked, {format_kib(size_kib)} found"


def _still_above(desired: DesiredState, facts: DomainFacts) -> Iterator[str]:
    """What was lowered on purpose and is stored so, while the running domain has it until its next start.

    Not the current memory, of which a guest has more for some seconds after each start.
    """
    config, live = facts.config, facts.live
    if config is None or live is None:
        return
    for what, asked, stored, found in (
        ("live maximum vCPUs", desired.max_vcpus, config.maximum_vcpus, live.maximum_vcpus),
        ("live current vCPUs", desired.vcpus, config.current_vcpus, live.current_vcpus),
    ):
        if asked is not None and asked == stored < found:
            yield f"{what}: {asked} asked, {found} found"
    asked_kib = desired.max_memory_kib
    if asked_kib is not None and asked_kib == round_to_mib(config.memory_kib) < round_to_mib(live.memory_kib):
        yield f"live maximum memory: {format_kib(asked_kib)} asked, {format_kib(live.memory_kib)} found"


def _live_memory_kib(facts: DomainFacts) -> int | None:
    if facts.live is None:
        return None
    return current_memory_kib(facts) if has_balloon(facts.live) else facts.live.memory_kib


def _flavor_changed(desired: DesiredState, facts: DomainFacts) -> Drift:
    nova = facts.nova
    assert nova is not None, "only a server has a flavor"

    def text(name: str, vcpus: int | None, memory_mib: int | None) -> str:
        return f"{name or 'unnamed'} ({vcpus} vCPUs, {memory_mib} MiB)"

    then = text(desired.flavor, desired.flavor_vcpus, desired.flavor_memory_mib)
    now = text(nova.flavor, nova.flavor_vcpus, nova.flavor_memory_mib)
    return Drift(
        DriftStatus.FLAVOR_CHANGED,
        (f"flavor: {then} when it was asked, {now} now: the server was resized since",),
        "nothing is re-applied; ask for a new size, or drop the record (hvctl forget)",
    )


def _starts_anew(facts: DomainFacts) -> bool:
    """Whether Nova's next start of the server discards the definition; a suspended one is resumed from its image."""
    return facts.nova is not None and facts.live is None and not facts.managed_save


def _regain(facts: DomainFacts) -> str:
    if facts.nova is not None and facts.live is None:
        return "start the server first: Nova's start makes the definition anew; then raise the ceiling again"
    return (
        "write the ceiling again (hvctl raise, or policy config: hvctl drift DOMAIN --policy config), then reboot "
        "softly (hvctl reboot)"
    )


def _regrow(desired: DesiredState, facts: DomainFacts) -> str:
    sizes = []
    if desired.vcpus is not None:
        sizes.append(f"--vcpus {desired.vcpus}")
        if facts.guest is not None and facts.guest.online < desired.vcpus:
            sizes.append("--online all")  # else only CPUs that are new are brought online
    if desired.memory_kib is not None:
        sizes.append(f"--memory {format_kib(desired.memory_kib).replace(' ', '')}")
    return f"grow it again (hvctl scale DOMAIN {' '.join(sizes)}), or drop the record (hvctl forget)"
