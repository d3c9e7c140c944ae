"""A domain whose QEMU does not answer libvirt: how that shows, and what libvirt tells all the same.

Everything here runs in a native thread, and asks nothing for which libvirt waits for the
domain's job, so that it cannot hang with the domain (case GA-07).
"""

from __future__ import annotations

import libvirt

from hvsvc.adapters.libvirt_facts import STATES, Listed
from hvsvc.domain.definition import NovaMetadata
from hvsvc.domain.facts import DomainState
from hvsvc.domain.nova_metadata import KNOWN_NAMESPACES, parse_nova_metadata
from hvsvc.domain.unread import UnreadDomain
from hvsvc.errors import DeadlineError, HvsvcError, Reason

#: From here on libvirt gives out a definition only to whoever gets the domain's job, for which it waits up to 30 s
#: while another caller has it, such as one that asks a QEMU that hangs. Measured: 9.0 does not, 11.3 does; what lies
#: between is taken to, since that can only cost the definition of a domain that hangs.
DEFINITION_WAITS_SINCE = 9_001_000


def refuse_silent(domain: libvirt.virDomain, silent_s: float) -> None:
    """Refuses a domain whose QEMU somebody has been asking for `silent_s` without an answer.

    :raises DeadlineError: CALL_TIMED_OUT.
    """
    if not domain.isActive():
        return
    try:
        state, _, since_ms = domain.controlInfo()
    except libvirt.libvirtError as err:
        if err.get_error_code() in {libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_SUPPORT}:
            return  # it stopped meanwhile; or a driver without the call, such as the test driver
        raise
    if state == libvirt.VIR_DOMAIN_CONTROL_OCCUPIED and since_ms >= silent_s * 1000:
        name = domain.name()
        raise DeadlineError(
            Reason.CALL_TIMED_OUT,
            f"Could not read domain {name}: its QEMU has not answered libvirt for {since_ms / 1000:.0f} s, and libvirt "
            "gives out no definition meanwhile. See what holds QEMU up (its log, its storage; virsh domcontrol "
            f"{name}), then read again.",
            {"silentS": since_ms // 1000},
        )


def read_unread(
    domain: libvirt.virDomain, listed: Listed, error: HvsvcError, silent_s: float
) -> UnreadDomain:
    """Reads what needs no definition; where a QEMU silent for `silent_s` explains `error`, that is told instead."""
    if isinstance(error, DeadlineError):
        try:
            refuse_silent(domain, silent_s)
        except DeadlineError as silence:
            error = silence
    state, maximum_kib, used_kib, vcpus, _ = domain.info()
    active = bool(domain.isActive())
    return UnreadDomain(
        uuid=domain.UUIDString(),
        libvirt_name=domain.name(),
        error=error,
        id=domain.ID() if active else None,
        state=STATES.get(state, DomainState.NO_STATE),
        persistent=listed.persistent,
        autostart=listed.autostart,
        managed_save=listed.managed_save,
        maximum_vcpus=_read_maximum_vcpus(domain) if active else None,
        current_vcpus=vcpus if active else None,
        maximum_memory_kib=maximum_kib if active else None,
        used_memory_kib=used_kib if active else None,
        nova=read_nova(domain),
    )


def read_nova(domain: libvirt.virDomain) -> NovaMetadata | None:
    """Nova's metadata in the running definition, else in the stored one."""
    for side in (libvirt.VIR_DOMAIN_AFFECT_CURRENT, libvirt.VIR_DOMAIN_AFFECT_CONFIG):
        for namespace in KNOWN_NAMESPACES:
            try:
                return parse_nova_metadata(
                    domain.metadata(libvirt.VIR_DOMAIN_METADATA_ELEMENT, namespace, side)
                )
            except libvirt.libvirtError as err:
                if err.get_error_code() not in _NO_METADATA:
                    raise
            except HvsvcError:
                return None  # it cannot be read, so it names nothing
    return None


#: the last two are of a transient domain, which has no stored definition, and of a driver without the call
_NO_METADATA = frozenset(
    {libvirt.VIR_ERR_NO_DOMAIN_METADATA, libvirt.VIR_ERR_OPERATION_INVALID, libvirt.VIR_ERR_NO_SUPPORT}
)


def _read_maximum_vcpus(domain: libvirt.virDomain) -> int | None:
    try:
        return int(domain.vcpusFlags(libvirt.VIR_DOMAIN_AFFECT_LIVE | libvirt.VIR_DOMAIN_VCPU_MAXIMUM))
    except libvirt.libvirtError as err:
        if err.get_error_code() != libvirt.VIR_ERR_OPERATION_INVALID:
            raise
        return None  # it stopped meanwhile
