"""The list of single vCPUs follows maximum and current, and stays one that libvirt starts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.domain.definition import VcpuEntry
from hvsvc.domain.vcpu_list import resize_vcpus
from tests.domain.random_xml import vcpu_lists


def entry(number: int, state: str, order: int | None = None) -> VcpuEntry:
    """`state`: on (always there), plugged (removable), off."""
    return VcpuEntry(number, enabled=state != "off", hotpluggable=state != "on", order=order)


def states(entries: tuple[VcpuEntry, ...]) -> list[str]:
    """One word a vCPU, in the order of ids."""
    assert [found.id for found in entries] == list(range(len(entries)))
    words = {
        (True, False): "on",
        (True, True): "plugged",
        (False, True): "off",
        (False, False): "broken",
    }
    return [words[found.enabled, found.hotpluggable] for found in entries]


def test_topo_09_a_new_list_keeps_boot_vcpus_and_makes_the_others_removable() -> None:
    assert states(resize_vcpus((), boot=2, maximum=4, current=2)) == ["on", "on", "off", "off"]
    assert states(resize_vcpus((), boot=2, maximum=4, current=3)) == ["on", "on", "plugged", "off"]
    assert states(resize_vcpus((), boot=3, maximum=4, current=1)) == ["on", "off", "off", "off"]


def test_topo_09_existing_entries_keep_what_they_are_and_gaps_are_filled() -> None:
    short = (entry(0, "on"), entry(1, "plugged"), entry(3, "off"))
    assert states(resize_vcpus(short, boot=2, maximum=6, current=2)) == [
        "on",
        "plugged",
        "off",
        "off",
        "off",
        "off",
    ]


def test_topo_08_ids_above_a_lower_maximum_go_and_current_is_kept() -> None:
    sparse = (entry(0, "on"), entry(1, "off"), entry(2, "plugged"), entry(7, "plugged"))
    assert states(resize_vcpus(sparse, boot=3, maximum=4, current=3)) == ["on", "plugged", "plugged", "off"]


def test_current_enables_the_lowest_and_disables_the_highest() -> None:
    entries = (entry(0, "on"), entry(1, "off"), entry(2, "plugged"), entry(3, "off"))
    assert states(resize_vcpus(entries, boot=2, maximum=4, current=3)) == ["on", "plugged", "plugged", "off"]
    assert states(resize_vcpus(entries, boot=2, maximum=4, current=1)) == ["on", "off", "off", "off"]


def test_cpu_05_a_boot_vcpu_that_is_disabled_becomes_hotpluggable() -> None:
    # libvirt refuses a vCPU that is neither enabled nor hotpluggable
    entries = (entry(0, "on"), entry(1, "on"))
    assert states(resize_vcpus(entries, boot=2, maximum=2, current=1)) == ["on", "off"]


def test_cpu_09_without_hotplug_a_new_vcpu_is_one_that_is_always_there() -> None:
    entries = (entry(0, "on"), entry(1, "off"))
    assert states(resize_vcpus(entries, boot=1, maximum=3, current=3, hotplug=False)) == ["on", "on", "on"]


def test_topo_09_a_boot_vcpu_behind_a_gap_becomes_hotpluggable() -> None:
    entries = (entry(0, "on"), entry(1, "off"), entry(2, "on"))
    assert states(resize_vcpus(entries, boot=2, maximum=4, current=2)) == ["on", "off", "plugged", "off"]


@pytest.mark.parametrize(
    ("orders", "current", "wanted"),
    [
        ([1, 2, None, None], 2, [1, 2, None, None]),
        ([1, 3, 2, None], 3, [1, 3, 2, None]),
        ([1, 2, None, None], 3, [1, 2, 3, None]),
        ([1, 4, 3, None], 4, [1, 3, 2, 4]),
        ([1, 9, 5, None], 3, [1, 3, 2, None]),
        ([1, 2, 2, None], 3, [None, None, None, None]),
        ([1, 3, 2, None], 2, [1, 3, None, None]),
        ([None, None, None, None], 3, [None, None, None, None]),
    ],
)
def test_orders_stay_where_they_are_valid_and_are_counted_anew_where_not(
    orders: list[int | None], current: int, wanted: list[int | None]
) -> None:
    enabled = sum(order is not None for order in orders) or 2
    entries = tuple(
        entry(number, "on" if number == 0 else "plugged" if number < enabled else "off", order)
        for number, order in enumerate(orders)
    )
    result = resize_vcpus(entries, boot=enabled, maximum=4, current=current)
    assert [found.order for found in result] == wanted


@given(stored=vcpu_lists(), maximum=st.integers(1, 12), data=st.data())
def test_any_list_becomes_one_that_libvirt_takes(
    stored: tuple[VcpuEntry, ...], maximum: int, data: st.DataObject
) -> None:
    current = data.draw(st.integers(1, maximum))
    boot = sum(found.enabled for found in stored)
    result = resize_vcpus(stored, boot=boot, maximum=maximum, current=current)
    words = states(result)
    assert len(words) == maximum
    assert "broken" not in words
    assert words[: words.count("on")] == ["on"] * words.count("on")
    assert words[0] == "on"
    assert maximum - words.count("off") == current
    orders = [found.order for found in result if found.enabled and found.order is not None]
    assert len(set(orders)) == len(orders)
    assert len(orders) in (0, current)
    assert not orders or (orders[0] == 1 and max(orders) <= maximum)
    assert orders[: words.count("on")] == sorted(orders[: words.count("on")])
    assert all(found.order is None for found in result if not found.enabled)
    assert resize_vcpus(result, boot=current, maximum=maximum, current=current) == result
