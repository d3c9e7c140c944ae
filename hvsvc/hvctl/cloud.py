"""Nova as the caller's own credential sees it: the only module of hvctl that knows openstacksdk.

openstacksdk finds and reads clouds.yaml; its session speaks to Keystone and Nova. It is
an extra of the client and is imported when a cloud is asked, for it takes longer to
load than all the rest.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from hvsvc.errors import Reason
from hvsvc.hvctl.failure import Failure

if TYPE_CHECKING:
    from keystoneauth1.adapter import Adapter

#: shows `locked` (2.9), the flavor a server was made from (2.47) and an action's events to the owner too (2.51)
_MICROVERSION: Final = "2.51"
_UUID: Final = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BY_HTTP: Final = {
    400: "FAILED_PRECONDITION",
    401: "PERMISSION_DENIED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
}
_BY_HTTP_REASON: Final = {
    "NOT_FOUND": Reason.SERVER_NOT_FOUND,
    "PERMISSION_DENIED": Reason.NOVA_NOT_PERMITTED,
    "FAILED_PRECONDITION": Reason.NOVA_REFUSED,
    "UNAVAILABLE": Reason.NOVA_UNAVAILABLE,
}


class CloudError(Exception):
    """The cloud could not be asked, or refused; `failure` says what to report."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


@dataclass(frozen=True, slots=True)
class CloudServer:
    """A server as Nova shows it; the last three are None without an admin's rights."""

    id: str
    name: str
    status: str
    task_state: str | None
    locked: bool
    flavor: str
    flavor_vcpus: int
    flavor_memory_mib: int
    host: str | None
    hypervisor_hostname: str | None
    host_status: str | None
    #: stands for the host, differently in each project; also without an admin's rights; "" for a server on none
    host_id: str


class Cloud:
    """One cloud of clouds.yaml.

    :param name: a name in clouds.yaml, or "envvars" for the OS_* environment.
    :param timeout_s: longest silence of one call.
    :raise CloudError: openstacksdk is not installed, or there is no such cloud.
    """

    def __init__(self, name: str, timeout_s: float) -> None:
        self.name = name
        self._adapter = self._connect(timeout_s)

    def find_servers(self, name: str) -> list[CloudServer]:
        """The servers with this id or name, those of every project where the credential may see them.

        :raise CloudError: Nova cannot be asked.
        """
        if _UUID.fullmatch(name):
            answer = self._call("GET", f"/servers/{name.lower()}", f"server {name}", missing_is_fine=True)
            return [self._server(self._part(answer, "server", dict))] if answer else []
        # Nova takes the name for a regular expression; what the database makes of it is compared again.
        path = f"/servers/detail?name={quote(f'^{re.escape(name)}$', safe='')}"
        try:
            answer = self._call("GET", f"{path}&all_tenants=1", "servers of all projects")
        except CloudError as err:
            if err.failure.code != "PERMISSION_DENIED":
                raise
            answer = self._call("GET", path, "servers of the project")
        found = [self._server(item) for item in self._part(answer, "servers", list)]
        return [server for server in found if server.name == name]

    def read_server(self, server_id: str) -> CloudServer:
        """The server as it is now.

        :raise CloudError: also where it is gone.
        """
        answer = self._call("GET", f"/servers/{quote(server_id, safe='')}", f"server {server_id}")
        return self._server(self._part(answer, "server", dict))

    def act(self, server_id: str, action: dict[str, Any], what: str) -> str:
        """Ask for an action, once; the request id under which Nova keeps it, empty where it does not say.

        :raise CloudError: refused, or it is not known whether it was taken (UNAVAILABLE).
        """
        path = f"/servers/{quote(server_id, safe='')}/action"
        response = self._send("POST", path, what, action)
        self._check(response, what)
        return str(response.headers.get("x-openstack-request-id", ""))

    def action_failed(self, server_id: str, request_id: str) -> bool:
        """Whether a part of the action ended with an error, such as a resize for which no host was found.

        :raise CloudError: Nova cannot be asked.
        """
        if not request_id:
            return False
        path = f"/servers/{quote(server_id, safe='')}/os-instance-actions/{quote(request_id, safe='')}"
        answer = self._call("GET", path, f"action {request_id}", missing_is_fine=True)
        if not answer:
            return False
        events = self._part(answer, "instanceAction", dict).get("events") or []
        try:
            return any(event.get("result") == "Error" for event in events)
        except (AttributeError, TypeError) as err:
            raise self._nonsense(f"action {request_id}") from err

    def _connect(self, timeout_s: float) -> Adapter:
        try:
            import openstack.config  # noqa: PLC0415  see the head of this module
            from keystoneauth1 import exceptions as keystone  # noqa: PLC0415
            from keystoneauth1.adapter import Adapter  # noqa: PLC0415
            from openstack import exceptions as sdk  # noqa: PLC0415
        except ModuleNotFoundError as err:
            message = (
                "to ask a cloud hvctl needs openstacksdk, which is not installed: pip install openstacksdk"
            )
            raise CloudError(Failure("FAILED_PRECONDITION", message)) from err
        try:
            clouds = openstack.config.OpenStackConfig(app_name="hvctl")
            region = clouds.get_one(self.name, api_timeout=timeout_s)
            return Adapter(
                session=region.get_session(),
                service_type=region.get_service_type("compute"),
                service_name=region.get_service_name("compute"),
                interface=region.get_interface("compute"),
                region_name=region.get_region_name("compute"),
                endpoint_override=region.get_endpoint("compute"),
            )
        except (
            sdk.SDKException,
            keystone.ClientException,
            OSError,
            ValueError,
            TypeError,
            AttributeError,
        ) as err:
            message = f"cloud {self.name} cannot be used: {err}; look at clouds.yaml or the OS_* environment"
            raise CloudError(
                Failure("FAILED_PRECONDITION", message, Reason.NOVA_NOT_CONFIGURED.value)
            ) from err

    def _call(self, method: str, path: str, what: str, *, missing_is_fine: bool = False) -> dict[str, Any]:
        response = self._send(method, path, what, None)
        if missing_is_fine and _is_missing(response):
            return {}
        self._check(response, what)
        try:
            answer = response.json()
        except ValueError as err:
            raise self._nonsense(what) from err
        if not isinstance(answer, dict):
            raise self._nonsense(what)
        return answer

    def _send(self, method: str, path: str, what: str, body: dict[str, Any] | None) -> Any:
        from keystoneauth1 import exceptions as keystone  # noqa: PLC0415

        try:
            return self._adapter.request(
                path, method, json=body, microversion=_MICROVERSION, raise_exc=False, connect_retries=0
            )
        except (keystone.Unauthorized, keystone.Forbidden) as err:
            message = f"Keystone refused to sign in to cloud {self.name} (HTTP {err.http_status}); check the credential"
            raise CloudError(Failure("PERMISSION_DENIED", message, Reason.NOVA_NOT_PERMITTED.value)) from err
        except keystone.ClientException as err:
            message = f"cloud {self.name} cannot be reached for the {what}: {err}"
            raise CloudError(Failure("UNAVAILABLE", message, Reason.NOVA_UNAVAILABLE.value)) from err

    def _check(self, response: Any, what: str) -> None:
        status = response.status_code
        if 200 <= status < 300:
            return
        code = _BY_HTTP.get(status, "ABORTED" if status == 409 else "UNAVAILABLE")
        if code == "NOT_FOUND" and not _is_missing(response):
            code = "UNAVAILABLE"
        message = {
            "NOT_FOUND": f"Nova of cloud {self.name} knows no {what}, or the credential may not see it",
            "PERMISSION_DENIED": f"Nova of cloud {self.name} does not permit the credential the {what}, or a quota is "
            "used up",
            "FAILED_PRECONDITION": f"Nova of cloud {self.name} refused the {what}",
            "ABORTED": f"Nova of cloud {self.name} refused the {what} in the server's present state",
            "UNAVAILABLE": f"Nova of cloud {self.name} could not answer for the {what}",
        }[code]
        reason = Reason.SERVER_BUSY if code == "ABORTED" else _BY_HTTP_REASON[code]
        raise CloudError(
            Failure(code, f"{message} (HTTP {status})", reason.value, {"httpStatus": str(status)})
        )

    def _server(self, shown: Any) -> CloudServer:
        try:
            flavor = shown["flavor"]
            return CloudServer(
                id=str(shown["id"]),
                name=str(shown["name"]),
                status=str(shown["status"]),
                task_state=shown.get("OS-EXT-STS:task_state"),
                locked=bool(shown.get("locked")),
                flavor=str(flavor.get("original_name", "")),
                flavor_vcpus=int(flavor.get("vcpus", 0)),
                flavor_memory_mib=int(flavor.get("ram", 0)),
                host=shown.get("OS-EXT-SRV-ATTR:host"),
                hypervisor_hostname=shown.get("OS-EXT-SRV-ATTR:hypervisor_hostname"),
                host_status=shown.get("host_status"),
                host_id=str(shown.get("hostId", "")),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as err:
            raise self._nonsense("server") from err

    def _part(self, answer: dict[str, Any], key: str, kind: type) -> Any:
        if not isinstance(answer.get(key), kind):
            raise self._nonsense(key)
        return answer[key]

    def _nonsense(self, what: str) -> CloudError:
        message = f"the answer of cloud {self.name} for the {what} is not one of Nova"
        return CloudError(Failure("UNAVAILABLE", message, Reason.NOVA_UNAVAILABLE.value))


def _is_missing(response: Any) -> bool:
    """Whether Nova says that there is no such thing; a proxy without a Nova answers 404, too, but not in its words."""
    if response.status_code != 404:
        return False
    try:
        return "itemNotFound" in response.json()
    except (ValueError, TypeError):
        return False
