"""libvirt's error codes in hvsvc's words, once (case API-01).

Only the code and the domain of an error decide, never its text: the text changes between
releases and drivers (case CPU-01). What the code cannot tell apart, the caller checks before
the call. Codes: https://libvirt.org/html/libvirt-virterror.html#virErrorNumber
"""

from __future__ import annotations

import libvirt

from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    GuestAgentError,
    HvsvcError,
    NotFoundError,
    NotPermittedError,
    Reason,
    UnavailableError,
    UnimplementedError,
)

_UNAVAILABLE: tuple[type[HvsvcError], Reason] = (UnavailableError, Reason.LIBVIRT_UNAVAILABLE)
_NOT_PERMITTED = (NotPermittedError, Reason.LIBVIRT_NOT_PERMITTED)
_BUSY = (AbortedError, Reason.DOMAIN_BUSY)
_CANNOT = (UnimplementedError, Reason.HYPERVISOR_REFUSED)
_SILENT = (GuestAgentError, Reason.AGENT_SILENT)

# By number, with libvirt's name, because the headers of the oldest release lack the newest names. Every other
# code is a refusal of what was asked: FAILED_PRECONDITION with the reason of the call.
_MEANINGS: dict[int, tuple[type[HvsvcError], Reason]] = {
    2: _UNAVAILABLE,  # NO_MEMORY
    3: _CANNOT,  # NO_SUPPORT
    4: _UNAVAILABLE,  # UNKNOWN_HOST
    5: _UNAVAILABLE,  # NO_CONNECT
    6: _UNAVAILABLE,  # INVALID_CONN
    29: _NOT_PERMITTED,  # OPERATION_DENIED
    39: _UNAVAILABLE,  # RPC
    40: _UNAVAILABLE,  # GNUTLS_ERROR
    42: (NotFoundError, Reason.DOMAIN_NOT_FOUND),  # NO_DOMAIN
    45: _NOT_PERMITTED,  # AUTH_FAILED
    68: _BUSY,  # OPERATION_TIMEOUT: libvirt waited 30 s for another job of the domain (case GA-07)
    74: _CANNOT,  # ARGUMENT_UNSUPPORTED
    78: _BUSY,  # OPERATION_ABORTED
    79: _NOT_PERMITTED,  # AUTH_CANCELLED
    84: _CANNOT,  # OPERATION_UNSUPPORTED
    85: _UNAVAILABLE,  # SSH
    86: _SILENT,  # AGENT_UNRESPONSIVE
    87: _BUSY,  # RESOURCE_BUSY
    88: _NOT_PERMITTED,  # ACCESS_DENIED
    94: _NOT_PERMITTED,  # AUTH_UNAVAILABLE
    97: _SILENT,  # AGENT_UNSYNCED
    98: _UNAVAILABLE,  # LIBSSH
    112: _SILENT,  # AGENT_COMMAND_TIMEOUT
    113: (GuestAgentError, Reason.AGENT_REFUSED),  # AGENT_COMMAND_FAILED
}

#: parts of libvirt that speak only about the connection, never about a domain
_TRANSPORTS = frozenset({libvirt.VIR_FROM_RPC, libvirt.VIR_FROM_REMOTE})
_DENIALS = frozenset(code for code, meaning in _MEANINGS.items() if meaning is _NOT_PERMITTED)
#: codes that say nothing by themselves
_VAGUE = frozenset({libvirt.VIR_ERR_INTERNAL_ERROR, libvirt.VIR_ERR_SYSTEM_ERROR})


def translate_error(
    error: libvirt.libvirtError,
    asked: str,
    *,
    refusal: Reason = Reason.HYPERVISOR_REFUSED,
    alive: bool = True,
) -> HvsvcError:
    """What a libvirt error means; the caller raises it `from` the original.

    :param asked: what was asked, as the object of "could not": "define instance-00000001".
    :param refusal: the reason where libvirt refuses what was asked.
    :param alive: whether the connection still stands; an error of a dead connection says
        nothing about the domain.
    """
    code = error.get_error_code() or 0
    source = error.get_error_domain() or 0
    text = error.get_error_message() or str(error)
    metadata = {"libvirtCode": code, "libvirtDomain": source}
    lost = not alive or (code in _VAGUE and source in _TRANSPORTS)
    kind, reason = _UNAVAILABLE if lost else _MEANINGS.get(code, (FailedPreconditionError, refusal))
    if reason is Reason.LIBVIRT_UNAVAILABLE:
        return kind(reason, f"Could not {asked}: no connection to libvirt ({text}). Retry later.", metadata)
    if reason is Reason.LIBVIRT_NOT_PERMITTED:
        hint = "Give hvsvc's user access to libvirt."
        return kind(reason, f"Could not {asked}: libvirt does not permit it ({text}). {hint}", metadata)
    if reason is Reason.DOMAIN_BUSY:
        hint = "Something else works on the domain: retry when it is done."
        return kind(reason, f"Could not {asked}: {text}. {hint}", metadata)
    return kind(reason, f"Could not {asked}: libvirt says: {text}", metadata)


def translate_open_error(error: libvirt.libvirtError, uri: str) -> HvsvcError:
    """What it means that no connection could be opened: not permitted, or else not there."""
    meaning = translate_error(error, f"open {uri}", alive=error.get_error_code() in _DENIALS)
    assert isinstance(meaning, NotPermittedError | UnavailableError)
    return meaning
