"""A host of one domain that behaves as told: for what the real parts cannot be made to do on demand.

`errors` maps a call, such as "set_vcpus_live", to what it raises; `calls` lists the
mutations in order. Time passes only in `sleep`, and `at` runs something then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from hvsvc.domain.desired import DesiredState
from hvsvc.domain.edit_definition import Edit, edit_definition
from hvsvc.domain.facts import (
    Balloon,
    DomainEvent,
    DomainFacts,
    DomainState,
    GuestCpu,
    GuestCpus,
    HostFacts,
    LifecycleEvent,
    ServerFacts,
)
from hvsvc.domain.flavor import Flavor
from hvsvc.domain.host_room import HostResources
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.read_definition import parse_definition
from hvsvc.domain.unread import DomainList, UnreadDomain
from hvsvc.domain.xml_document import fingerprint
from hvsvc.errors import AbortedError, DeadlineError, GuestAgentError, HvsvcError, NotFoundError, Reason
from tests.fakes.worlds import HOST, SERVER, UUID, domain_xml, facts


class FakeClock:
    """Moves only when somebody sleeps."""

    def __init__(self) -> None:
        self.time_s = 1_000_000.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def now_s(self) -> float:
        return self.time_s

    def monotonic_s(self) -> float:
        return self.time_s

    def at(self, delay_s: float, action: Callable[[], None]) -> None:
        self._due.append((self.time_s + delay_s, action))

    async def sleep(self, delay_s: float) -> None:
        self.time_s += delay_s
        for entry in [entry for entry in self._due if entry[0] <= self.time_s]:
            self._due.remove(entry)
            entry[1]()
        await asyncio.sleep(0)


@dataclass
class FakeHost:
    """libvirt, guest and Nova in one, so that they agree as the real ones do."""

    config_xml: str
    clock: FakeClock = field(default_factory=FakeClock)
    errors: dict[str, HvsvcError] = field(default_factory=dict)
    calls: list[tuple[str, Any]] = field(default_factory=list)
    #: called with the name of a call before it happens
    before_call: Callable[[str], None] = lambda name: None
    live_xml: str | None = None
    id: int = 7
    #: "follows", "stuck": what the guest's balloon driver does
    balloon_driver: str = "follows"
    balloon_kib: int = 0
    guest: dict[int, bool] = field(default_factory=dict)
    #: hot-added CPUs come up by themselves
    auto_online: bool = False
    agent_error: GuestAgentError | None = None
    online_error: GuestAgentError | None = None
    #: what a soft reboot does: "soft", "fallback", "error", "never", or "same process"; or, where nova-compute dies
    #: meanwhile and its action never gets a result, "dropped" or "hard later"
    nova_reboot: str = "soft"
    nova_seconds: float = 3.0
    server: ServerFacts = SERVER
    flavors: Sequence[Flavor] = ()
    #: projects that may use a flavor that is not public, by its id
    flavor_projects: dict[str, tuple[str, ...]] = field(default_factory=dict)
    #: the definition Nova makes anew
    flavor_xml: str = ""
    obeys_shutdown: bool = True
    #: whether libvirt knows the domain
    defined: bool = True
    _queues: list[asyncio.Queue[DomainEvent | HvsvcError]] = field(default_factory=list)
    _reboots: dict[str, str | None] = field(default_factory=dict)
    _sizes: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.flavor_xml = self.flavor_xml or self.config_xml
        if self.live_xml is None:
            self._boot()

    # ---------------------------------------------------------------- what the world does

    def _boot(self) -> None:
        self.live_xml = self.config_xml
        live = parse_definition(self.live_xml)
        self.guest = dict.fromkeys(range(live.current_vcpus), True)
        self._move_balloon(live.memory_kib)
        self.clock.at(5, self._inflate)

    def _inflate(self) -> None:
        if self.live_xml is not None and self.balloon_driver == "follows":
            self._move_balloon(parse_definition(self.live_xml).current_memory_kib)

    def _move_balloon(self, memory_kib: int) -> None:
        self.balloon_kib = memory_kib
        self._sizes.append((self.clock.time_s, memory_kib))

    def settle(self) -> FakeHost:
        """Lets the guest finish booting."""
        self._inflate()
        self.clock.time_s += 10
        return self

    def emit(self, kind: LifecycleEvent) -> None:
        for queue in self._queues:
            queue.put_nowait(DomainEvent(UUID, "instance-00000001", kind, kind.value))

    def lose_connection(self, error: HvsvcError) -> None:
        for queue in self._queues:
            queue.put_nowait(error)

    def edit_outside(self, edit: Edit) -> None:
        """An operator's virsh edit."""
        self.config_xml = edit_definition(self.config_xml, edit)

    def restart_with(self, xml: str) -> None:
        """Somebody else starts it anew from another definition, as a hard reboot does."""
        self.config_xml = xml
        self._start()

    def _start(self) -> None:
        self.id += 1
        self._boot()
        self.emit(LifecycleEvent.STARTED)

    def _call(self, name: str, value: Any = None) -> None:
        self.before_call(name)
        if name in self.errors:
            raise self.errors[name]
        self.calls.append((name, value))

    # ---------------------------------------------------------------- Hypervisor

    async def read_domain(self, uuid: str, *, hasty: bool = False) -> DomainFacts:
        self.before_call("read_domain")
        if "read_domain" in self.errors:
            raise self.errors["read_domain"]
        if uuid != UUID or not self.defined:
            raise NotFoundError(Reason.DOMAIN_NOT_FOUND, f"no domain {uuid}")
        live = parse_definition(self.live_xml) if self.live_xml is not None else None
        return replace(
            facts(),
            id=self.id if live else None,
            state=DomainState.RUNNING if live else DomainState.SHUT_OFF,
            config=parse_definition(self.config_xml),
            live=live,
            config_xml=self.config_xml,
            etag=fingerprint(self.config_xml),
            used_memory_kib=self._used_kib() if live else None,
            balloon=self._balloon() if live else Balloon(),
            guest=None,
        )

    def _used_kib(self) -> int:
        """libvirt's figure: what the balloon was at a second ago."""
        known = [kib for since_s, kib in self._sizes if since_s <= self.clock.time_s - 1]
        return known[-1] if known else self._sizes[0][1]

    def _balloon(self) -> Balloon:
        return Balloon(
            self.balloon_kib, self.balloon_kib - 60_000, self.balloon_kib // 2, int(self.clock.now_s())
        )

    async def read_domains(self) -> DomainList:
        if not self.defined:
            return DomainList([])
        try:
            return DomainList([await self.read_domain(UUID, hasty=True)])
        except DeadlineError as err:
            return DomainList([], [UnreadDomain(UUID, "instance-00000001", err, state=DomainState.RUNNING)])

    async def find_uuids(self, name: str) -> Sequence[tuple[str, str]]:
        return [(UUID, "instance-00000001")] if self._has_name(name) else []

    def _has_name(self, name: str) -> bool:
        return self.defined and name in (UUID, "instance-00000001", "web-1")

    async def read_balloon(self, uuid: str) -> Balloon:
        self.before_call("read_balloon")
        if "read_balloon" in self.errors:
            raise self.errors["read_balloon"]
        return self._balloon()

    async def read_host(self, domain: DomainFacts) -> HostFacts:
        return HOST

    async def read_resources(self) -> HostResources:
        return HostResources(HOST.pcpus, HOST.memory_kib)

    async def define(self, uuid: str, previous_etag: str, xml: str) -> None:
        self.before_call("define")
        if fingerprint(self.config_xml) != previous_etag:
            raise AbortedError(Reason.DEFINITION_CHANGED, "changed meanwhile")
        self._call("define", xml)
        self.config_xml = xml
        self.emit(LifecycleEvent.DEFINED_UPDATED)

    async def set_vcpus_live(self, uuid: str, vcpus: int) -> None:
        partial = self.errors.pop("set_vcpus_live midway", None)
        self._call("set_vcpus_live", vcpus)
        assert self.live_xml is not None
        reached = vcpus - 1 if partial else vcpus
        self.live_xml = edit_definition(self.live_xml, Edit(current_vcpus=reached))
        for cpu in range(len(self.guest), reached):
            self.guest[cpu] = self.auto_online
        if partial:
            raise partial

    async def set_memory_live(self, uuid: str, memory_kib: int) -> None:
        self._call("set_memory_live", memory_kib)
        if self.balloon_driver == "follows":
            self.clock.at(1, lambda: self._move_balloon(memory_kib))

    async def shut_down(self, uuid: str, *, agent: bool) -> None:
        self._call("shut_down", agent)
        if self.obeys_shutdown:
            self.clock.at(2, self._stop)

    def _stop(self) -> None:
        self.live_xml = None
        self.emit(LifecycleEvent.STOPPED_SHUTDOWN)

    async def start(self, uuid: str) -> None:
        self.before_call("start")
        error = self.errors.pop("start once", None)
        if error is not None:
            raise error
        self._call("start")
        self._start()

    @asynccontextmanager
    async def events(self, uuid: str | None = None) -> AsyncIterator[AsyncIterator[DomainEvent]]:
        queue: asyncio.Queue[DomainEvent | HvsvcError] = asyncio.Queue()
        self._queues.append(queue)

        async def read() -> AsyncIterator[DomainEvent]:
            while True:
                event = await queue.get()
                if isinstance(event, HvsvcError):
                    raise event
                yield event

        try:
            yield read()
        finally:
            self._queues.remove(queue)

    # ---------------------------------------------------------------- Guest

    async def read_cpus(self, uuid: str) -> GuestCpus:
        self.before_call("read_cpus")
        if self.agent_error is not None:
            raise self.agent_error
        return GuestCpus(tuple(GuestCpu(cpu, online, cpu > 0) for cpu, online in sorted(self.guest.items())))

    async def set_online(self, uuid: str, cpu_ids: frozenset[int]) -> None:
        self.calls.append(("set_online", cpu_ids))
        if self.online_error is not None:
            raise self.online_error
        self.guest |= dict.fromkeys(cpu_ids, True)

    async def ping(self, uuid: str) -> None:
        self.before_call("ping")
        if "ping" in self.errors:
            raise self.errors["ping"]
        if self.agent_error is not None:
            raise self.agent_error

    # ---------------------------------------------------------------- Servers

    async def read_server(self, server_id: str) -> ServerFacts:
        if "read_server" in self.errors:
            raise self.errors["read_server"]
        return self.server

    async def reboot_soft(self, server_id: str) -> str:
        self._call("reboot_soft")
        self.server = replace(self.server, task_state="rebooting")
        self._reboots["req-1"] = None
        if self.nova_reboot != "never":
            self.clock.at(self.nova_seconds, self._nova_finishes)
        return "req-1"

    def _nova_finishes(self) -> None:
        self.server = replace(self.server, task_state=None)
        if self.nova_reboot not in ("dropped", "hard later"):
            self._reboots["req-1"] = "Error" if self.nova_reboot == "error" else "Success"
        if self.nova_reboot == "error":
            self.server = replace(self.server, status="ERROR")
            self.live_xml = None
        elif self.nova_reboot in ("fallback", "hard later"):
            self.hard_reboot()
        elif self.nova_reboot == "soft":
            self.emit(LifecycleEvent.STOPPED_SHUTDOWN)
            self._start()

    def hard_reboot(self) -> None:
        """What Nova does at once and by itself: the definition is made anew, the domain started from it."""
        self.config_xml = self.flavor_xml
        self.emit(LifecycleEvent.STOPPED_DESTROYED)
        self.emit(LifecycleEvent.UNDEFINED)
        self.emit(LifecycleEvent.DEFINED_ADDED)
        self._start()

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        if "read_reboot_result" in self.errors:
            raise self.errors["read_reboot_result"]
        return self._reboots[request_id]

    async def list_flavors(self) -> Sequence[Flavor]:
        if "list_flavors" in self.errors:
            raise self.errors["list_flavors"]
        return self.flavors

    async def may_use_flavor(self, flavor_id: str, project_id: str) -> bool:
        return project_id in self.flavor_projects.get(flavor_id, ())


@dataclass
class FakeJournal:
    """Keeps everything in memory; `errors` as in FakeHost."""

    errors: dict[str, HvsvcError] = field(default_factory=dict)
    records: dict[str, OperationRecord] = field(default_factory=dict)
    history: list[OperationRecord] = field(default_factory=list)
    definitions: list[tuple[str, str, str]] = field(default_factory=list)
    desired: dict[str, DesiredState] = field(default_factory=dict)

    def _check(self, name: str) -> None:
        if name in self.errors:
            raise self.errors[name]

    async def begin(self, operation: OperationRecord) -> None:
        self._check("begin")
        self.records[operation.id] = operation

    async def update(self, operation: OperationRecord) -> None:
        self._check("update")
        await asyncio.sleep(0)
        self.records[operation.id] = operation
        self.history.append(operation)

    async def keep_definition(self, operation_id: str, uuid: str, xml: str, time_s: float) -> None:
        self._check("keep_definition")
        self.definitions.append((operation_id, uuid, xml))

    async def read_kept_definition(self, uuid: str) -> str | None:
        return next((xml for _, kept, xml in reversed(self.definitions) if kept == uuid), None)

    async def read(self, operation_id: str) -> OperationRecord | None:
        self._check("read")
        return self.records.get(operation_id)

    async def read_by_request(self, caller: str, request_id: str, since_s: float) -> OperationRecord | None:
        return next(
            (
                r
                for r in self.records.values()
                if (r.caller, r.request_id) == (caller, request_id) and r.create_time_s >= since_s
            ),
            None,
        )

    async def read_page(
        self, *, uuid: str | None, done: bool | None, before: tuple[float, str] | None, limit: int
    ) -> Sequence[OperationRecord]:
        found = sorted(self.records.values(), key=lambda r: (r.create_time_s, r.id), reverse=True)
        return [
            r
            for r in found
            if (uuid is None or r.uuid == uuid)
            and (done is None or r.done is done)
            and (before is None or (r.create_time_s, r.id) < before)
        ][:limit]

    async def delete(self, operation_id: str) -> bool:
        found = self.records.get(operation_id)
        return found is not None and found.done and self.records.pop(operation_id) is found

    async def replace_desired(
        self, uuid: str, known: DesiredState | None, wanted: DesiredState | None
    ) -> bool:
        self._check("replace_desired")
        if self.desired.get(uuid) != known:
            return False
        if wanted is None:
            self.desired.pop(uuid, None)
        else:
            self.desired[uuid] = wanted
        return True

    async def read_desired(self, uuid: str) -> DesiredState | None:
        self._check("read_desired")
        return self.desired.get(uuid)

    async def read_all_desired(self) -> Sequence[DesiredState]:
        self._check("read_desired")
        return [self.desired[uuid] for uuid in sorted(self.desired)]


def host(**values: Any) -> FakeHost:
    """A settled running domain of `domain_xml(**values)`."""
    return FakeHost(domain_xml(**values)).settle()
