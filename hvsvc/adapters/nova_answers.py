"""What Nova's HTTP answers mean: facts, or errors of ours."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, ValidationError

from hvsvc.adapters.openstack_answer import Amount, Answer, Part, Speaker
from hvsvc.domain.facts import ServerFacts
from hvsvc.domain.flavor import Flavor
from hvsvc.errors import FailedPreconditionError, NotFoundError, NotPermittedError, Reason, UnavailableError

#: https://docs.openstack.org/api-guide/compute/faults.html: over a rate or a quota
_TOO_MANY = (413, 429)
_REBOOT_EVENT = "compute_reboot_instance"


_NOVA = Speaker("Nova", Reason.NOVA_UNAVAILABLE)


class _OwnFlavor(Part):
    """The copy that a server embeds (2.47); extra specs where policy shows them."""

    original_name: str
    vcpus: Amount
    ram: Amount
    disk: Amount
    ephemeral: Amount
    extra_specs: dict[str, str] = Field({})


class _Server(Part):
    id: str
    name: str
    status: str
    locked: bool
    task_state: str | None = Field(alias="OS-EXT-STS:task_state")
    vm_state: str | None = Field(alias="OS-EXT-STS:vm_state")
    host: str | None = Field(None, alias="OS-EXT-SRV-ATTR:host")
    libvirt_name: str | None = Field(None, alias="OS-EXT-SRV-ATTR:instance_name")
    hypervisor_hostname: str | None = Field(None, alias="OS-EXT-SRV-ATTR:hypervisor_hostname")
    #: since 2.16
    host_status: str | None = None
    project_id: str = Field("", alias="tenant_id")
    flavor: _OwnFlavor | None = None
    #: an object; the empty string where the server was made from a volume
    image: dict[str, object] | Literal[""] | None = None


class _ServerAnswer(Part):
    server: _Server


class _NotFoundAnswer(Part):
    fault: dict[str, object] = Field(alias="itemNotFound")


class _Event(Part):
    event: str
    result: str | None


class _Action(Part):
    events: list[_Event]


class _ActionAnswer(Part):
    action: _Action = Field(alias="instanceAction")


class _Flavor(Part):
    id: str
    name: str
    vcpus: Amount
    ram: Amount
    disk: Amount
    ephemeral: Amount = Field(0, alias="OS-FLV-EXT-DATA:ephemeral")
    disabled: bool = Field(False, alias="OS-FLV-DISABLED:disabled")
    public: bool = Field(True, alias="os-flavor-access:is_public")
    extra_specs: dict[str, str] = Field({})


class _FlavorsAnswer(Part):
    flavors: list[_Flavor]
    links: list[object] = Field([], alias="flavors_links")


class _Grant(Part):
    project_id: str = Field(alias="tenant_id")


class _AccessAnswer(Part):
    grants: list[_Grant] = Field(alias="flavor_access")


def check_status(answer: Answer, what: str) -> None:
    """Raises what an answer that is not a success stands for; Nova's own words are never looked at."""
    status = answer.status
    metadata = {"httpStatus": status}
    if 200 <= status < 300:
        return
    if status == 404:
        if not _is_novas_404(answer):
            raise UnavailableError(
                Reason.NOVA_UNAVAILABLE,
                f"the answer for the {what} is HTTP 404, and not one of Nova; see whether something else answers at "
                "its address, such as a proxy without Nova behind it",
                metadata,
            )
        raise NotFoundError(
            Reason.SERVER_NOT_FOUND,
            f"Nova knows no {what}; it is gone, or of a project that the credential cannot see",
            metadata,
        )
    if status in (401, 403):
        raise NotPermittedError(
            Reason.NOVA_NOT_PERMITTED,
            f"Nova does not permit the credential the {what} (HTTP {status}); give it the role its policy asks for",
            metadata,
        )
    if status == 406:
        raise FailedPreconditionError(
            Reason.NOVA_REFUSED, "this Nova is too old: hvsvc needs its API 2.51 (Pike) or newer", metadata
        )
    if 400 <= status < 500 and status not in _TOO_MANY:
        raise FailedPreconditionError(
            Reason.NOVA_REFUSED,
            f"Nova refused the {what} (HTTP {status}); look at the server (openstack server show)",
            metadata,
        )
    raise UnavailableError(
        Reason.NOVA_UNAVAILABLE,
        f"Nova could not answer for the {what} (HTTP {status}); see whether it works, then ask again",
        metadata,
    )


def _is_novas_404(answer: Answer) -> bool:
    """Whether Nova says that there is no such thing: a proxy's 404, or that of a wrong path, names no fault of Nova's.

    https://docs.openstack.org/api-guide/compute/faults.html
    """
    try:
        _NotFoundAnswer.model_validate_json(answer.body)
    except ValidationError:
        return False
    return True


def parse_server(answer: Answer, server_id: str) -> ServerFacts:
    """Facts of a server.

    :raises UnavailableError: NOVA_UNAVAILABLE; the answer is not one of Nova, or of another server.
    """
    server = _NOVA.parse(_ServerAnswer, answer).server
    if server.id != server_id:
        raise _NOVA.nonsense(f"it speaks of server {server.id} where {server_id} was asked")
    return ServerFacts(
        id=server.id,
        name=server.name,
        status=server.status,
        task_state=server.task_state,
        vm_state=server.vm_state,
        locked=server.locked,
        host=server.host,
        libvirt_name=server.libvirt_name,
        project_id=server.project_id,
        flavor=None if server.flavor is None else _own_flavor(server.flavor),
        volume_backed=server.image == "",
        host_status=server.host_status,
        hypervisor_hostname=server.hypervisor_hostname,
    )


def parse_flavors(answer: Answer) -> tuple[list[Flavor], str | None]:
    """Flavors of one page that may be chosen, and the marker of the next page where there is one.

    :raises UnavailableError: NOVA_UNAVAILABLE; the answer is not one of Nova.
    """
    page = _NOVA.parse(_FlavorsAnswer, answer)
    flavors = [
        Flavor(
            id=flavor.id,
            name=flavor.name,
            vcpus=flavor.vcpus,
            memory_mib=flavor.ram,
            disk_gib=flavor.disk,
            ephemeral_gib=flavor.ephemeral,
            public=flavor.public,
            extra_specs=flavor.extra_specs,
        )
        for flavor in page.flavors
        if not flavor.disabled
    ]
    return flavors, page.flavors[-1].id if page.links and page.flavors else None


def parse_flavor_projects(answer: Answer) -> frozenset[str]:
    """Ids of the projects that have access to a flavor.

    :raises UnavailableError: NOVA_UNAVAILABLE; the answer is not one of Nova.
    """
    return frozenset(grant.project_id for grant in _NOVA.parse(_AccessAnswer, answer).grants)


def parse_reboot_result(answer: Answer) -> str | None:
    """Result of the compute host's part of a reboot; None until it has ended.

    :raises UnavailableError: NOVA_UNAVAILABLE; the answer is not one of Nova.
    """
    events = _NOVA.parse(_ActionAnswer, answer).action.events
    return next((event.result for event in events if event.event == _REBOOT_EVENT), None)


def parse_request_id(answer: Answer, server_id: str) -> str:
    """The id under which Nova keeps the instance action of this request.

    :raises UnavailableError: NOVA_UNAVAILABLE; the answer does not say, so that the
        reboot, which was taken, cannot be followed.
    """
    # X-OpenStack-Request-Id came with 2.46, the older name is still sent.
    for name in ("x-openstack-request-id", "x-compute-request-id"):
        if request_id := answer.headers.get(name):
            return request_id
    raise UnavailableError(
        Reason.NOVA_UNAVAILABLE,
        f"Nova took the soft reboot of server {server_id}, but its answer carries no X-OpenStack-Request-Id, so that "
        "the reboot cannot be followed; let the proxy before Nova pass that header, and look at the server",
        {"serverId": server_id},
    )


def _own_flavor(flavor: _OwnFlavor) -> Flavor:
    return Flavor(
        id="",
        name=flavor.original_name,
        vcpus=flavor.vcpus,
        memory_mib=flavor.ram,
        disk_gib=flavor.disk,
        ephemeral_gib=flavor.ephemeral,
        extra_specs=flavor.extra_specs,
    )
