"""Every error hvsvc raises on purpose: one tree, one list of reasons.

The class says how a caller should react (it maps to one gRPC status, see
`hvsvc/service/status.py`, and to one exit code of hvctl); the reason says what
happened. Anything else that escapes is a bug and is reported as INTERNAL.

Standard library only: hvctl imports this too.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Final


class Reason(StrEnum):
    """Machine-readable reason of an error, a blocker, a warning or an outcome."""

    # What the caller asked is not valid, whatever the state.
    INVALID_VALUE = "INVALID_VALUE"
    NOTHING_ASKED = "NOTHING_ASKED"
    TOPOLOGY_NOT_FACTORABLE = "TOPOLOGY_NOT_FACTORABLE"
    MAXIMUM_BELOW_CURRENT = "MAXIMUM_BELOW_CURRENT"
    AMBIGUOUS_NAME = "AMBIGUOUS_NAME"
    REQUEST_ID_REUSED = "REQUEST_ID_REUSED"
    # There is no such thing.
    DOMAIN_NOT_FOUND = "DOMAIN_NOT_FOUND"
    OPERATION_NOT_FOUND = "OPERATION_NOT_FOUND"
    OPERATION_RUNNING = "OPERATION_RUNNING"
    SERVER_NOT_FOUND = "SERVER_NOT_FOUND"
    NOTHING_RECORDED = "NOTHING_RECORDED"
    # The state does not allow it.
    REBOOT_REQUIRED = "REBOOT_REQUIRED"
    ABOVE_LIVE_CEILING = "ABOVE_LIVE_CEILING"
    ABOVE_CONFIG_CEILING = "ABOVE_CONFIG_CEILING"
    ABOVE_MACHINE_LIMIT = "ABOVE_MACHINE_LIMIT"
    ABOVE_HYPERVISOR_LIMIT = "ABOVE_HYPERVISOR_LIMIT"
    NEEDS_EXTENDED_INTERRUPTS = "NEEDS_EXTENDED_INTERRUPTS"
    ABOVE_HOST_CAPACITY = "ABOVE_HOST_CAPACITY"
    NO_ACPI = "NO_ACPI"
    TRANSIENT_DOMAIN = "TRANSIENT_DOMAIN"
    MANAGED_SAVE_IMAGE = "MANAGED_SAVE_IMAGE"
    NO_VCPU_HOTPLUG = "NO_VCPU_HOTPLUG"
    LIVE_VCPU_SHRINK = "LIVE_VCPU_SHRINK"
    DOMAIN_NOT_RUNNING = "DOMAIN_NOT_RUNNING"
    SEVERAL_NUMA_CELLS = "SEVERAL_NUMA_CELLS"
    PINNED = "PINNED"
    CPUSET_NOT_ON_HOST = "CPUSET_NOT_ON_HOST"
    HUGEPAGES = "HUGEPAGES"
    MEMORY_DEVICES = "MEMORY_DEVICES"
    MEMORY_LOCKED = "MEMORY_LOCKED"
    NO_BALLOON = "NO_BALLOON"
    BELOW_MEMORY_FLOOR = "BELOW_MEMORY_FLOOR"
    MEMORY_USE_UNKNOWN = "MEMORY_USE_UNKNOWN"
    BROKEN_DEFINITION = "BROKEN_DEFINITION"
    UNSUPPORTED_DEFINITION = "UNSUPPORTED_DEFINITION"
    DEFINITION_REFUSED = "DEFINITION_REFUSED"
    DEFINITIONS_DIFFER = "DEFINITIONS_DIFFER"
    SERVER_LOCKED = "SERVER_LOCKED"
    SERVER_NOT_ACTIVE = "SERVER_NOT_ACTIVE"
    SERVER_ELSEWHERE = "SERVER_ELSEWHERE"
    NOVA_NOT_CONFIGURED = "NOVA_NOT_CONFIGURED"
    NOVA_REFUSED = "NOVA_REFUSED"
    NOVA_START_DISCARDS = "NOVA_START_DISCARDS"
    PLACEMENT_REFUSED = "PLACEMENT_REFUSED"
    ALLOCATION_MISSING = "ALLOCATION_MISSING"
    ALLOCATION_ABOVE_MAX_UNIT = "ALLOCATION_ABOVE_MAX_UNIT"
    ALLOCATION_NO_CAPACITY = "ALLOCATION_NO_CAPACITY"
    CEILING_LOST = "CEILING_LOST"
    CEILING_NOT_STORED = "CEILING_NOT_STORED"
    REBOOT_NOT_APPLIED = "REBOOT_NOT_APPLIED"
    SHUTDOWN_IGNORED = "SHUTDOWN_IGNORED"
    START_FAILED = "START_FAILED"
    HYPERVISOR_REFUSED = "HYPERVISOR_REFUSED"
    # Busy or changed: read again, then redo.
    DOMAIN_BUSY = "DOMAIN_BUSY"
    SERVER_BUSY = "SERVER_BUSY"
    DEFINITION_CHANGED = "DEFINITION_CHANGED"
    ALLOCATION_CHANGED = "ALLOCATION_CHANGED"
    DAEMON_RESTARTED = "DAEMON_RESTARTED"
    CANCELLED = "CANCELLED"
    # Not there now: retry.
    LIBVIRT_UNAVAILABLE = "LIBVIRT_UNAVAILABLE"
    NOVA_UNAVAILABLE = "NOVA_UNAVAILABLE"
    PLACEMENT_UNAVAILABLE = "PLACEMENT_UNAVAILABLE"
    JOURNAL_UNAVAILABLE = "JOURNAL_UNAVAILABLE"
    CALL_TIMED_OUT = "CALL_TIMED_OUT"
    SHUTTING_DOWN = "SHUTTING_DOWN"
    TOO_MANY_OPERATIONS = "TOO_MANY_OPERATIONS"
    TOO_MANY_CALLS = "TOO_MANY_CALLS"
    READER_TOO_SLOW = "READER_TOO_SLOW"
    # Who asks.
    NOT_PERMITTED = "NOT_PERMITTED"
    NOT_AUTHENTICATED = "NOT_AUTHENTICATED"
    LIBVIRT_NOT_PERMITTED = "LIBVIRT_NOT_PERMITTED"
    NOVA_NOT_PERMITTED = "NOVA_NOT_PERMITTED"
    PLACEMENT_NOT_PERMITTED = "PLACEMENT_NOT_PERMITTED"
    # The guest.
    AGENT_NOT_CONFIGURED = "AGENT_NOT_CONFIGURED"
    AGENT_NOT_CONNECTED = "AGENT_NOT_CONNECTED"
    AGENT_COMMAND_MISSING = "AGENT_COMMAND_MISSING"
    AGENT_FROZEN = "AGENT_FROZEN"
    AGENT_SILENT = "AGENT_SILENT"
    AGENT_REPLY_INVALID = "AGENT_REPLY_INVALID"
    AGENT_REFUSED = "AGENT_REFUSED"
    GUEST_NOT_BOOTED = "GUEST_NOT_BOOTED"
    # Outcomes and conditions.
    GUEST_CPUS_OFFLINE = "GUEST_CPUS_OFFLINE"
    GUEST_CPUS_UNKNOWN = "GUEST_CPUS_UNKNOWN"
    BALLOON_BELOW_TARGET = "BALLOON_BELOW_TARGET"
    BALLOON_NOT_SETTLED = "BALLOON_NOT_SETTLED"
    TARGET_NOT_REACHED = "TARGET_NOT_REACHED"
    NOVA_STATE_UNKNOWN = "NOVA_STATE_UNKNOWN"
    ALLOCATION_DIFFERS = "ALLOCATION_DIFFERS"
    CONFIG_LIVE_DIFFER = "CONFIG_LIVE_DIFFER"
    PENDING_REBOOT = "PENDING_REBOOT"
    LOST_BY_HARD_REBOOT = "LOST_BY_HARD_REBOOT"
    REMOVED_BY_LIBVIRT = "REMOVED_BY_LIBVIRT"
    ROUNDED = "ROUNDED"
    SPLIT_CORE = "SPLIT_CORE"
    TOPOLOGY_REPAIRED = "TOPOLOGY_REPAIRED"
    INTERNAL = "INTERNAL"


class HvsvcError(Exception):
    """Root of the tree.

    :param reason: what happened.
    :param message: one or two sentences: what was asked, what is allowed, and the
        next step.
    :param metadata: the values named in the message, for machines; keys are
        lowerCamelCase (AIP-193).

    `others` holds further errors of the same refusal, where several things stand in
    the way at once: the caller should learn of all of them in one answer.
    """

    #: name of the gRPC status code it maps to
    status: ClassVar[str] = "INTERNAL"
    others: tuple[HvsvcError, ...] = ()

    def __init__(self, reason: Reason, message: str, metadata: Mapping[str, object] | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message
        self.metadata: dict[str, str] = {key: str(value) for key, value in (metadata or {}).items()}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.reason.value}, {self.message!r}, {self.metadata!r})"


class InvalidArgumentError(HvsvcError):
    """The request is wrong whatever the state; `field` names the request field."""

    status = "INVALID_ARGUMENT"

    def __init__(
        self, reason: Reason, message: str, metadata: Mapping[str, object] | None = None, *, field: str = ""
    ) -> None:
        super().__init__(reason, message, metadata)
        self.field = field


class NotFoundError(HvsvcError):
    """There is no such domain, server or operation."""

    status = "NOT_FOUND"


class AlreadyExistsError(HvsvcError):
    """The request_id was used for another request."""

    status = "ALREADY_EXISTS"


class FailedPreconditionError(HvsvcError):
    """The state must be changed first; the message says how."""

    status = "FAILED_PRECONDITION"


class UnimplementedError(HvsvcError):
    """The architecture or the hypervisor cannot do it at all."""

    status = "UNIMPLEMENTED"


class AbortedError(HvsvcError):
    """Busy, or changed meanwhile: read again, then redo."""

    status = "ABORTED"


class CancelledError(HvsvcError):
    """The operation ended before its next step because someone cancelled it."""

    status = "CANCELLED"


class UnavailableError(HvsvcError):
    """A part is not there now: retry the same call later."""

    status = "UNAVAILABLE"


class DeadlineError(HvsvcError):
    """A wait ended at its bound; what is true now is unknown unless stated."""

    status = "DEADLINE_EXCEEDED"


#: whether what was asked for was done is not known; the part that was asked may be back soon
UNANSWERED: Final = (UnavailableError, DeadlineError)


class ExhaustedError(HvsvcError):
    """A limit of the service itself is reached."""

    status = "RESOURCE_EXHAUSTED"


class NotPermittedError(HvsvcError):
    """The caller, or hvsvc's own credential, may not do it."""

    status = "PERMISSION_DENIED"


class UnauthenticatedError(HvsvcError):
    """The caller did not prove who it is."""

    status = "UNAUTHENTICATED"


class InternalError(HvsvcError):
    """A bug of hvsvc."""

    status = "INTERNAL"


class GuestAgentError(HvsvcError):
    """The guest agent could not do or say something; never ends an operation by itself.

    The reason tells not configured, not connected, command missing, frozen, silent,
    invalid reply and refused apart (cases GA-01, GA-02, GA-03, GA-06).
    """

    status = "FAILED_PRECONDITION"
