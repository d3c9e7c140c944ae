"""Exit codes of hvctl: one table for RPC errors, operation errors and outcomes.

0 done, also pending a reboot as asked · 1 internal error · 2 bad usage or invalid
argument · 3 not found · 4 a precondition fails · 5 busy, changed meanwhile or already
exists · 6 unavailable or timed out · 7 done in part or unconfirmed · 8 not permitted
· 130 interrupted while waiting (the operation goes on).
"""

from __future__ import annotations

from typing import Final

OK: Final = 0
INTERNAL: Final = 1
USAGE: Final = 2
NOT_FOUND: Final = 3
PRECONDITION: Final = 4
BUSY: Final = 5
UNAVAILABLE: Final = 6
NOT_PROVEN: Final = 7
NOT_PERMITTED: Final = 8
#: 128 + SIGINT, as shells have it
INTERRUPTED: Final = 130
#: 128 + SIGPIPE, as shells have it
BROKEN_PIPE: Final = 141

#: name of a gRPC status code -> exit code
BY_STATUS: Final[dict[str, int]] = {
    "OK": OK,
    "CANCELLED": NOT_PROVEN,
    "UNKNOWN": INTERNAL,
    "INVALID_ARGUMENT": USAGE,
    "DEADLINE_EXCEEDED": UNAVAILABLE,
    "NOT_FOUND": NOT_FOUND,
    "ALREADY_EXISTS": BUSY,
    "PERMISSION_DENIED": NOT_PERMITTED,
    "RESOURCE_EXHAUSTED": UNAVAILABLE,
    "FAILED_PRECONDITION": PRECONDITION,
    "ABORTED": BUSY,
    "OUT_OF_RANGE": USAGE,
    "UNIMPLEMENTED": PRECONDITION,
    "INTERNAL": INTERNAL,
    "UNAVAILABLE": UNAVAILABLE,
    "DATA_LOSS": INTERNAL,
    "UNAUTHENTICATED": NOT_PERMITTED,
}

#: outcome, without its prefix -> exit code
BY_OUTCOME: Final[dict[str, int]] = {
    "COMPLETE": OK,
    "PENDING_REBOOT": OK,
    "VALIDATED": OK,
    "PARTIAL": NOT_PROVEN,
    "UNCONFIRMED": NOT_PROVEN,
}


def for_status(code: str) -> int:
    """Exit code of a gRPC status; a code newer than this hvctl is an internal error."""
    return BY_STATUS.get(code, INTERNAL)


def for_outcome(outcome: str | None, *, reboot_asked: bool = False) -> int:
    """Exit code of a finished change.

    An outcome that is absent or unknown proves nothing. PENDING_REBOOT is success only
    for a caller who asked for no reboot.
    """
    if outcome == "PENDING_REBOOT" and reboot_asked:
        return NOT_PROVEN
    return BY_OUTCOME.get(outcome or "", NOT_PROVEN)
