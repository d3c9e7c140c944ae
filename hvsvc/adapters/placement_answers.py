"""What Placement's HTTP answers mean: facts, or errors of ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from hvsvc.adapters.openstack_answer import MOST, Amount, Answer, Part, Speaker
from hvsvc.domain.allocation import AllocationFacts, Inventory, ProviderRoom, Size
from hvsvc.errors import FailedPreconditionError, NotPermittedError, Reason, UnavailableError

VCPU, MEMORY_MB = "VCPU", "MEMORY_MB"

#: the one conflict that is gone when the state is read again; all others are refusals
_CONCURRENT_UPDATE = "placement.concurrent_update"


_PLACEMENT = Speaker("Placement", Reason.PLACEMENT_UNAVAILABLE)


class _Provided(Part):
    resources: dict[str, Amount]


class Consumer(Part):
    """All that Placement has allocated to one consumer, by provider; written back as a whole."""

    allocations: dict[str, _Provided]
    consumer_generation: int | None = None
    project_id: str | None = None
    user_id: str | None = None

    def replaced(self, resource_provider: str, size: Size) -> dict[str, Any]:
        """The body of a PUT that changes the two classes of this provider, and nothing else."""
        allocations = {uuid: {"resources": dict(part.resources)} for uuid, part in self.allocations.items()}
        allocations[resource_provider]["resources"] |= {VCPU: size.vcpus, MEMORY_MB: size.memory_mib}
        return {
            "allocations": allocations,
            "consumer_generation": self.consumer_generation,
            "project_id": self.project_id,
            "user_id": self.user_id,
        }


class _Inventory(Part):
    total: Amount
    reserved: Amount
    allocation_ratio: float = Field(strict=False, ge=0, allow_inf_nan=False)
    min_unit: Amount
    max_unit: Amount
    step_size: int = Field(ge=1, le=MOST)


class _Inventories(Part):
    inventories: dict[str, _Inventory]


class _Usages(Part):
    usages: dict[str, int]


class _Error(Part):
    code: str = ""


class _Errors(Part):
    errors: list[_Error]


def check_status(answer: Answer, what: str) -> None:
    """Raises what an answer that is not a success stands for; Placement's own words are never looked at."""
    status = answer.status
    metadata = {"httpStatus": status}
    if 200 <= status < 300:
        return
    if status in (401, 403):
        raise NotPermittedError(
            Reason.PLACEMENT_NOT_PERMITTED,
            f"Placement does not permit the credential the {what} (HTTP {status}); give it the admin role, or lower "
            '[placement] policy to "report" or "off"',
            metadata,
        )
    if status == 406:
        raise FailedPreconditionError(
            Reason.PLACEMENT_REFUSED,
            "this Placement is too old: hvsvc needs its API 1.36 (Train) or newer; set [placement] policy = "
            '"off", or upgrade it',
            metadata,
        )
    if 400 <= status < 500 and status not in (413, 429):
        raise refused(what, metadata)
    raise UnavailableError(
        Reason.PLACEMENT_UNAVAILABLE,
        f"Placement could not answer for the {what} (HTTP {status}); see whether it works, then ask again",
        metadata,
    )


def refused(what: str, metadata: Mapping[str, object]) -> FailedPreconditionError:
    """A refusal that nothing explains any further."""
    return FailedPreconditionError(
        Reason.PLACEMENT_REFUSED,
        f"Placement refused the {what}; look at the allocation (openstack resource provider allocation show)",
        metadata,
    )


def is_concurrent_update(answer: Answer) -> bool:
    """Whether a conflict only means that something was changed since it was read."""
    return any(error.code == _CONCURRENT_UPDATE for error in _PLACEMENT.parse(_Errors, answer).errors)


def parse_consumer(answer: Answer) -> Consumer:
    """Everything the consumer has.

    :raises UnavailableError: PLACEMENT_UNAVAILABLE; the answer is not one of Placement.
    """
    return _PLACEMENT.parse(Consumer, answer)


def find_compute(consumer: Consumer, server_id: str) -> AllocationFacts:
    """The part on the compute provider: the one that gives VCPU.

    :raises FailedPreconditionError: ALLOCATION_MISSING; none does, or several do, as after
        an evacuation until the old host is back.
    """
    found = [uuid for uuid, part in consumer.allocations.items() if VCPU in part.resources]
    if len(found) != 1:
        raise FailedPreconditionError(
            Reason.ALLOCATION_MISSING,
            f"in Placement {len(found)} providers give server {server_id} vCPUs ({', '.join(found) or 'none'}) where "
            "one should; hvsvc leaves that alone; see openstack resource provider allocation show, and nova-manage "
            "placement audit and heal_allocations",
            {"serverId": server_id, "providers": ",".join(found)},
        )
    resources = consumer.allocations[found[0]].resources
    return AllocationFacts(Size(resources[VCPU], resources.get(MEMORY_MB, 0)), found[0])


def parse_room(inventories: Answer, usages: Answer) -> ProviderRoom:
    """Both classes of a provider.

    :raises UnavailableError: PLACEMENT_UNAVAILABLE; the answers are not ones of Placement, or the
        provider lacks a class.
    """
    found = _PLACEMENT.parse(_Inventories, inventories).inventories
    used = _PLACEMENT.parse(_Usages, usages).usages
    if not {VCPU, MEMORY_MB} <= found.keys():
        raise _PLACEMENT.nonsense("the compute provider has no inventory of VCPU or MEMORY_MB")
    vcpu, memory_mb = (
        Inventory(**found[name].model_dump(), used=used.get(name, 0)) for name in (VCPU, MEMORY_MB)
    )
    return ProviderRoom(vcpu, memory_mb)
