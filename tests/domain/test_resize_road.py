"""Which flavor resizing through Nova would take, and what it says of the consequences."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hvsvc.domain.flavor import Flavor
from hvsvc.domain.resize_road import (
    ResizeRoad,
    ServerSize,
    describe_road,
    is_exact,
    rank_flavors,
    wished_size,
)
from hvsvc.domain.target import Method, Target
from tests.fakes.worlds import GIB, MIB, SERVER, facts

SMALL = Flavor("", "small", 2, 512, 10, extra_specs={"hw:cpu_policy": "shared"})
SERVED = replace(SERVER, project_id="p1", flavor=SMALL)
SIZE = ServerSize(4, 1024)


def flavor(name: str, vcpus: int = 4, memory_mib: int = 1024, disk_gib: int = 10, **more: object) -> Flavor:
    specs = {"extra_specs": {"hw:cpu_policy": "shared"}, **more}
    return Flavor(f"id-{name}", name, vcpus, memory_mib, disk_gib, **specs)  # type: ignore[arg-type]


def names(*flavors: Flavor, **server: object) -> list[str]:
    return [found.name for found in rank_flavors(flavors, replace(SERVED, **server), SIZE)]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "size"),
    [
        ({"vcpus": 4, "memory_kib": GIB}, ServerSize(4, 1024)),
        ({"vcpus": 4}, ServerSize(4, 512)),
        ({"memory_kib": GIB + 1}, ServerSize(2, 1025)),
        ({"max_vcpus": 8, "max_memory_kib": 2 * GIB}, ServerSize(8, 2048)),
        ({"vcpus": 4, "max_vcpus": 8}, ServerSize(4, 512)),
        ({}, ServerSize(2, 512)),
    ],
)
def test_the_size_is_what_runs_after_it(asked: dict[str, int], size: ServerSize) -> None:
    domain = facts({"memory_kib": 512 * MIB, "maximum": 2, "current": 2})
    assert wished_size(domain, Target(Method.SCALE_DOMAIN, **asked)) == size  # type: ignore[arg-type]


def test_just_the_size_comes_first_then_the_least_excess() -> None:
    found = names(
        flavor("wide", vcpus=16), flavor("tall", memory_mib=8192), flavor("more", vcpus=5), flavor("just")
    )
    assert found == ["just", "more", "wide", "tall"]
    assert is_exact(flavor("just"), SIZE)
    assert not is_exact(flavor("more", vcpus=5), SIZE)


def test_what_is_smaller_is_no_flavor_for_it() -> None:
    assert names(flavor("few", vcpus=3), flavor("little", memory_mib=1023)) == []


def test_nova_refuses_the_servers_own_flavor_and_a_smaller_disk() -> None:
    own, thin = flavor("small", vcpus=8), flavor("thin", disk_gib=9)
    assert names(own, thin, flavor("big")) == ["big"]
    assert names(thin, volume_backed=True) == ["thin"]
    lost = Flavor("", "small", 2, 512, 10, ephemeral_gib=5)
    assert names(flavor("big", ephemeral_gib=4), flavor("kept", ephemeral_gib=5), flavor=lost) == ["kept"]


def test_of_one_size_the_same_extra_specs_win_then_the_smaller_disk() -> None:
    pinned = flavor("a-pinned", extra_specs={"hw:cpu_policy": "dedicated"})
    assert names(pinned, flavor("c-big-disk", disk_gib=20), flavor("d-same")) == [
        "d-same",
        "c-big-disk",
        "a-pinned",
    ]


def test_a_server_whose_flavor_nova_does_not_tell_may_have_any() -> None:
    assert names(flavor("thin", disk_gib=0), flavor=None) == ["thin"]


def text(road: ResizeRoad) -> str:
    return "\n".join(road.consequences)


def test_the_consequences_name_the_restart_the_new_definition_and_the_claim() -> None:
    road = describe_road(SERVED, SIZE, flavor("big"), None)
    words = text(road)
    for word in (
        "restarts",
        "VERIFY_RESIZE",
        "maximum and current become 4 vCPUs and 1024 MiB",
        "raised ceiling",
        "another one",
        "Placement",
        "quota",
    ):
        assert word in words, word
    assert "extra specs" not in words
    assert "root disk" not in words


def test_differences_of_extra_specs_and_a_growing_disk_are_said() -> None:
    other = flavor("big", disk_gib=20, extra_specs={"hw:cpu_policy": "dedicated", "hw:numa_nodes": "2"})
    words = text(describe_road(SERVED, SIZE, other, None))
    assert "other extra specs: hw:cpu_policy shared → dedicated, hw:numa_nodes none → 2" in words
    assert "grows from 10 to 20 GiB" in words
    assert "root disk" not in text(describe_road(replace(SERVED, volume_backed=True), SIZE, other, None))


def test_without_an_exact_flavor_the_one_above_is_named() -> None:
    road = describe_road(SERVED, SIZE, None, flavor("more", vcpus=5))
    assert "more is the smallest above" in road.consequences[0]
    assert "5 vCPUs" in text(road)


def test_without_any_flavor_it_says_what_to_ask_for() -> None:
    road = describe_road(SERVED, SIZE, None, None)
    assert (road.exact, road.above) == (None, None)
    (only,) = road.consequences
    assert "4 vCPUs and 1024 MiB or more" in only
    assert "10 GiB" in only


def test_the_servers_own_flavor_is_named_where_it_alone_would_do() -> None:
    (fitting,) = describe_road(replace(SERVED, flavor=flavor("big", vcpus=8)), SIZE, None, None).consequences
    assert fitting.startswith("but for big, which the server has, no flavor")
    (small,) = describe_road(SERVED, SIZE, None, None).consequences
    assert small.startswith("no flavor")
