"""Looking for the flavor of the other road: access is asked for only where it decides."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from hvsvc.domain.flavor import Flavor
from hvsvc.domain.resize_road import ResizeRoad
from hvsvc.domain.target import Method, Target
from hvsvc.errors import NotPermittedError, Reason, UnavailableError
from tests.fakes.host import FakeHost, host
from tests.fakes.worlds import GIB, SERVER, UUID
from tests.operations.conftest import Floor

FloorOf = Callable[..., Floor]
TARGET = Target(Method.SCALE_DOMAIN, vcpus=4, memory_kib=GIB)
BIG = Flavor("f-big", "big", 4, 1024, 1)
HIDDEN = Flavor("f-hidden", "a-hidden", 4, 1024, 1, public=False)
ABOVE = Flavor("f-above", "above", 8, 1024, 1)


def served(*flavors: Flavor, nova: bool = True) -> FakeHost:
    found = host(nova=nova)
    found.server = replace(SERVER, project_id="p1", flavor=Flavor("", "small", 2, 512, 1))
    found.flavors = flavors
    return found


async def road(floor: Floor) -> ResizeRoad | None:
    return (await floor.changes.plan(f"domains/{UUID}", TARGET)).resize


async def test_a_plan_names_both_flavors(floor_of: FloorOf) -> None:
    found = await road(floor_of(served(ABOVE, BIG)))
    assert found is not None
    assert (found.exact, found.above) == (BIG, ABOVE)


@pytest.mark.parametrize(("projects", "exact"), [(("p2",), BIG), (("p2", "p1"), HIDDEN)])
async def test_a_private_flavor_counts_for_its_projects_alone(
    floor_of: FloorOf, projects: tuple[str, ...], exact: Flavor
) -> None:
    fake = served(HIDDEN, BIG)
    fake.flavor_projects = {"f-hidden": projects}
    found = await road(floor_of(fake))
    assert found is not None
    assert (found.exact, found.above) == (exact, None)


@pytest.mark.parametrize(
    "error",
    [
        UnavailableError(Reason.NOVA_UNAVAILABLE, "away"),
        NotPermittedError(Reason.NOVA_NOT_PERMITTED, "hidden"),
    ],
)
async def test_a_nova_that_cannot_tell_leaves_it_out_of_the_plan(
    floor_of: FloorOf, error: UnavailableError
) -> None:
    fake = served(BIG)
    fake.errors["list_flavors"] = error
    assert await road(floor_of(fake)) is None
    fake = served(BIG)
    fake.errors["read_server"] = error
    assert await road(floor_of(fake)) is None


async def test_a_domain_that_is_not_novas_has_no_such_road(floor_of: FloorOf) -> None:
    assert await road(floor_of(served(BIG, nova=False))) is None
    assert await road(floor_of(served(BIG), nova=False)) is None
