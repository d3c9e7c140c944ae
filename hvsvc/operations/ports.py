"""What operations need from the outside, as Protocols; adapters fulfil them, fakes too.

Every method raises only errors of `hvsvc.errors`, and every call is bounded by a
deadline of the adapter's own configuration (CALL_TIMED_OUT).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from hvsvc.domain.allocation import AllocationFacts, ProviderRoom, Size
from hvsvc.domain.desired import DesiredState
from hvsvc.domain.facts import Balloon, DomainEvent, DomainFacts, GuestCpus, HostFacts, ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.domain.host_room import HostResources
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.unread import DomainList


class Hypervisor(Protocol):
    """libvirt on this host. `uuid` is the canonical lower-case form.

    Raises NotFoundError(DOMAIN_NOT_FOUND), UnavailableError(LIBVIRT_UNAVAILABLE),
    DeadlineError(CALL_TIMED_OUT), NotPermittedError(LIBVIRT_NOT_PERMITTED) and, for
    mutations, FailedPreconditionError with HYPERVISOR_REFUSED, DEFINITION_REFUSED,
    START_FAILED or DOMAIN_NOT_RUNNING.
    """

    async def read_domain(self, uuid: str, *, hasty: bool = False) -> DomainFacts:
        """Reads one domain (no guest agent: `guest` is None).

        `hasty` gives up soon where nothing can be read while QEMU is silent.
        """
        ...

    async def read_domains(self) -> DomainList:
        """Reads every domain of the host, each as `read_domain` does in haste."""
        ...

    async def find_uuids(self, name: str) -> Sequence[tuple[str, str]]:
        """Finds (uuid, libvirt name) of the domains with this uuid, libvirt name or Nova server name."""
        ...

    async def read_balloon(self, uuid: str) -> Balloon:
        """Reads the balloon statistics of a running domain."""
        ...

    async def read_host(self, facts: DomainFacts) -> HostFacts:
        """Reads what the host could give to this domain (case API-06)."""
        ...

    async def read_resources(self) -> HostResources:
        """Reads what the host has, whoever uses it."""
        ...

    async def define(self, uuid: str, previous_etag: str, xml: str) -> None:
        """Defines `xml` if the stored definition still has `previous_etag`, read right before.

        :raises AbortedError: DEFINITION_CHANGED; nothing is written then.
        """
        ...

    async def set_vcpus_live(self, uuid: str, vcpus: int) -> None:
        """Plugs vCPUs into the running domain."""
        ...

    async def set_memory_live(self, uuid: str, memory_kib: int) -> None:
        """Sets the balloon's target; the guest follows later, or not (case MEM-01)."""
        ...

    async def shut_down(self, uuid: str, *, agent: bool) -> None:
        """Asks the guest to shut down, through its agent or the ACPI power button."""
        ...

    async def start(self, uuid: str) -> None:
        """Starts a domain that is off."""
        ...

    def events(self, uuid: str | None = None) -> AbstractAsyncContextManager[AsyncIterator[DomainEvent]]:
        """Subscribes to the events of one domain or all; none is lost from entering on.

        The iterator raises UnavailableError when the connection is lost (events may
        then have been missed) and ExhaustedError(READER_TOO_SLOW) when the reader
        lags too far behind.
        """
        ...


class Guest(Protocol):
    """The guest agent. Raises only GuestAgentError, NotFoundError, UnavailableError."""

    async def read_cpus(self, uuid: str) -> GuestCpus:
        """Lists the guest's CPUs (guest-get-vcpus), the reply validated as hostile."""
        ...

    async def set_online(self, uuid: str, cpu_ids: frozenset[int]) -> None:
        """Brings these CPUs online (guest-set-vcpus); a part may succeed: read again."""
        ...

    async def ping(self, uuid: str) -> None:
        """Asks for a sign of life."""
        ...


class Servers(Protocol):
    """Nova's API. Raises NotFoundError(SERVER_NOT_FOUND), UnavailableError(NOVA_UNAVAILABLE),
    NotPermittedError(NOVA_NOT_PERMITTED), FailedPreconditionError(NOVA_REFUSED), DeadlineError."""

    async def read_server(self, server_id: str) -> ServerFacts:
        """Reads the server."""
        ...

    async def reboot_soft(self, server_id: str) -> str:
        """Asks for a soft reboot; returns the request id of the instance action."""
        ...

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        """Result of the reboot's instance action, such as "Success" or "Error"; None while it runs."""
        ...

    async def list_flavors(self) -> Sequence[Flavor]:
        """Lists the flavors that the credential sees: an admin's sees all, a member's those of its project."""
        ...

    async def may_use_flavor(self, flavor_id: str, project_id: str) -> bool:
        """Whether the project has access to a flavor that is not public."""
        ...


class Placement(Protocol):
    """Placement's API. Raises UnavailableError(PLACEMENT_UNAVAILABLE), NotPermittedError(PLACEMENT_NOT_PERMITTED),
    FailedPreconditionError with ALLOCATION_MISSING or PLACEMENT_REFUSED, DeadlineError."""

    async def read_allocation(self, server_id: str) -> AllocationFacts:
        """Reads what the server has allocated on its compute provider."""
        ...

    async def read_room(self, resource_provider: str) -> ProviderRoom:
        """Reads inventory and usage of the provider's VCPU and MEMORY_MB."""
        ...

    async def set_allocation(self, server_id: str, seen: AllocationFacts, wanted: Size) -> AllocationFacts:
        """Sets VCPU and MEMORY_MB where they still are as `seen`; returns them as read back.

        All else of the server's allocation stays as it is.

        :raises AbortedError: ALLOCATION_CHANGED; nothing is written then.
        :raises FailedPreconditionError: ALLOCATION_ABOVE_MAX_UNIT, ALLOCATION_NO_CAPACITY,
            PLACEMENT_REFUSED; nothing is written then.
        """
        ...


class Journal(Protocol):
    """Keeps operations, previous definitions and desired states, durably.

    Raises UnavailableError(JOURNAL_UNAVAILABLE).
    """

    async def begin(self, operation: OperationRecord) -> None:
        """Stores a new operation."""
        ...

    async def update(self, operation: OperationRecord) -> None:
        """Stores the operation's new state; returns when it is on disk."""
        ...

    async def keep_definition(self, operation_id: str, uuid: str, xml: str, time_s: float) -> None:
        """Keeps a definition before it is replaced; returns when it is on disk."""
        ...

    async def read_kept_definition(self, uuid: str) -> str | None:
        """The definition kept last for this domain; None where none was."""
        ...

    async def read(self, operation_id: str) -> OperationRecord | None:
        """Reads one operation."""
        ...

    async def read_by_request(self, caller: str, request_id: str, since_s: float) -> OperationRecord | None:
        """The operation begun by this request of this caller, not older than `since_s`."""
        ...

    async def read_page(
        self, *, uuid: str | None, done: bool | None, before: tuple[float, str] | None, limit: int
    ) -> Sequence[OperationRecord]:
        """Newest first; `before` is (create_time_s, id) of the last one of the page before."""
        ...

    async def delete(self, operation_id: str) -> bool:
        """Forgets an operation that has ended; False where there was none."""
        ...

    async def replace_desired(
        self, uuid: str, known: DesiredState | None, wanted: DesiredState | None
    ) -> bool:
        """Stores `wanted` in place of `known`, the record as it was read; it is on disk then.

        None stands for no record. False, and nothing is stored, where another one is there.
        """
        ...

    async def read_desired(self, uuid: str) -> DesiredState | None:
        """What this domain was asked for; None where nothing is recorded."""
        ...

    async def read_all_desired(self) -> Sequence[DesiredState]:
        """What every domain was asked for, ordered by uuid."""
        ...


class Clock(Protocol):
    """Time, so that operations can be tested without waiting."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic_s(self) -> float:
        """Seconds of a clock that never jumps."""
        ...

    async def sleep(self, delay_s: float) -> None:
        """Waits."""
        ...
