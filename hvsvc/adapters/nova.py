"""Nova's API: reads servers, asks for soft reboots, and follows the instance action of one.

openstacksdk finds and reads clouds.yaml or the OS_* environment; its session speaks
to Keystone and Nova. Microversion 2.51 (Pike) is the least that tells `locked` (2.9)
and shows an action's events to the owner too (2.51).
"""

from __future__ import annotations

from urllib.parse import quote

from hvsvc.adapters.cloud_calls import CloudCalls
from hvsvc.adapters.cloud_session import CloudService
from hvsvc.adapters.nova_answers import (
    check_status,
    parse_flavor_projects,
    parse_flavors,
    parse_reboot_result,
    parse_request_id,
    parse_server,
)
from hvsvc.adapters.openstack_answer import Answer
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.errors import (
    AbortedError,
    FailedPreconditionError,
    HvsvcError,
    NotPermittedError,
    Reason,
)

NOVA = CloudService(
    "nova", "compute", "2.51", Reason.NOVA_UNAVAILABLE, Reason.NOVA_NOT_PERMITTED, check_status
)

#: lists flavors with their extra specs
_FLAVORS_MICROVERSION = "2.61"
#: of up to 1000 flavors each ([api] max_limit)
_FLAVOR_PAGES = 20


class NovaServers:
    """The `Servers` of a running daemon.

    Reads are repeated while Nova is unavailable; a reboot is asked for once and never again.

    :param cloud: a name in clouds.yaml, or "envvars".
    :param call_timeout_s: bound of every method, repetitions included; a refused reboot may
        take it twice, to read why.
    """

    def __init__(self, cloud: str, *, call_timeout_s: float) -> None:
        self._calls = CloudCalls(cloud, NOVA, call_timeout_s)

    def check(self) -> None:
        """Looks the cloud up in its configuration, without a call to it; blocks on the disk only.

        :raises FailedPreconditionError: NOVA_NOT_CONFIGURED; there is no such cloud,
            or it lacks what signing in needs.
        """
        self._calls.check()

    def close(self) -> None:
        """Ends the threads as their calls end; it does not wait."""
        self._calls.close()

    async def read_server(self, server_id: str) -> ServerFacts:
        """Reads the server. Host and libvirt name are None where the credential is not an admin's.

        :raises NotFoundError: SERVER_NOT_FOUND; also a server of another project.
        :raises NotPermittedError: NOVA_NOT_PERMITTED.
        :raises UnavailableError: NOVA_UNAVAILABLE, also for an answer that makes no sense.
        :raises DeadlineError: CALL_TIMED_OUT.
        """
        path = f"/servers/{quote(server_id, safe='')}"
        return parse_server(await self._read(path, f"server {server_id}"), server_id)

    async def reboot_soft(self, server_id: str) -> str:
        """Asks for a soft reboot; returns the request id, which names the instance action.

        :raises FailedPreconditionError: SERVER_LOCKED, or NOVA_REFUSED for any other state.
        :raises AbortedError: SERVER_BUSY; Nova has a task on the server.
        :raises DeadlineError, UnavailableError: as for `read_server`; whether Nova took
            the request is not known then.
        :raises NotFoundError, NotPermittedError: as for `read_server`.
        """
        path = f"/servers/{quote(server_id, safe='')}/action"
        body = {"reboot": {"type": "SOFT"}}
        what = f"soft reboot of server {server_id}"
        try:
            async with self._calls.within_timeout(what) as calls:
                answer = await calls.post(path, body, what)
        except FailedPreconditionError as err:
            if err.reason is not Reason.NOVA_REFUSED:
                raise
            raise await self._explain(server_id, err) from err
        return parse_request_id(answer, server_id)

    async def read_reboot_result(self, server_id: str, request_id: str) -> str | None:
        """Result of the reboot's instance action, such as "Success" or "Error"; None while it runs.

        "Success" does not tell a soft reboot from one that fell back to a hard one
        (measured on Nova 26.2).

        :raises NotFoundError: SERVER_NOT_FOUND; the server or the action is gone.
        :raises NotPermittedError, UnavailableError, DeadlineError: as for `read_server`.
        """
        path = f"/servers/{quote(server_id, safe='')}/os-instance-actions/{quote(request_id, safe='')}"
        return parse_reboot_result(await self._read(path, f"reboot {request_id} of server {server_id}"))

    async def list_flavors(self) -> list[Flavor]:
        """Lists the flavors that the credential sees, but those that are disabled.

        An admin sees those of every project; anybody else the public ones and those
        granted to the project of the credential. With their extra specs, which takes
        Nova's API 2.61 (Rocky).

        :raises FailedPreconditionError: NOVA_REFUSED; this Nova is older.
        :raises NotPermittedError, UnavailableError, DeadlineError: as for `read_server`.
        """
        found: list[Flavor] = []
        marker: str | None = ""
        for _ in range(_FLAVOR_PAGES):
            after = f"&marker={quote(marker, safe='')}" if marker else ""
            answer = await self._read(
                f"/flavors/detail?is_public=None{after}",
                "list of flavors",
                microversion=_FLAVORS_MICROVERSION,
            )
            page, marker = parse_flavors(answer)
            found += page
            if marker is None:
                break
        return found

    async def may_use_flavor(self, flavor_id: str, project_id: str) -> bool:
        """Whether the project has access to a flavor of `list_flavors` that is not public.

        Only an admin may ask that (policy os-flavor-access). What anybody else's
        credential sees in the list is granted to its own project, the only one whose
        servers it can read.

        :raises NotFoundError, UnavailableError, DeadlineError: as for `read_server`.
        """
        path = f"/flavors/{quote(flavor_id, safe='')}/os-flavor-access"
        try:
            return project_id in parse_flavor_projects(
                await self._read(path, f"access to flavor {flavor_id}")
            )
        except NotPermittedError:
            return True

    async def _explain(self, server_id: str, refused: FailedPreconditionError) -> HvsvcError:
        """Why Nova refused, from the server's state: its message is for people and changes."""
        try:
            server = await self.read_server(server_id)
        except HvsvcError:
            return refused
        metadata = {**refused.metadata, "status": server.status, "taskState": server.task_state or ""}
        if server.locked:
            return FailedPreconditionError(
                Reason.SERVER_LOCKED,
                f"Nova refused to reboot server {server_id}: it is locked; unlock it first (openstack server unlock)",
                metadata,
            )
        if server.task_state is not None:
            return AbortedError(
                Reason.SERVER_BUSY,
                f"Nova refused to reboot server {server_id}: its task {server.task_state} is not over; wait for it, "
                "then ask again",
                metadata,
            )
        return FailedPreconditionError(
            Reason.NOVA_REFUSED,
            f"Nova refused to reboot server {server_id} in status {server.status}, vm_state {server.vm_state}; a soft "
            "reboot needs ACTIVE",
            metadata,
        )

    async def _read(self, path: str, what: str, *, microversion: str = NOVA.microversion) -> Answer:
        async with self._calls.within_timeout(what) as calls:
            return await calls.read(path, what, microversion=microversion)
