"""libvirt's events, told and handed over."""

from __future__ import annotations

import asyncio

import libvirt
import pytest

from hvsvc.adapters.libvirt_events import EventHub, Subscription, parse_lifecycle
from hvsvc.domain.facts import DomainEvent, LifecycleEvent
from hvsvc.errors import ExhaustedError, Reason, UnavailableError

_NAMES = {
    number: name.removeprefix("VIR_DOMAIN_EVENT_")
    for name, number in vars(libvirt).items()
    if name.startswith("VIR_DOMAIN_EVENT_")
    and name.removeprefix("VIR_DOMAIN_EVENT_")
    in {
        "DEFINED",
        "UNDEFINED",
        "STARTED",
        "SUSPENDED",
        "RESUMED",
        "STOPPED",
        "SHUTDOWN",
        "PMSUSPENDED",
        "CRASHED",
    }
}
_DETAILS = [
    (number, detail, f"{name} {constant.removeprefix(f'VIR_DOMAIN_EVENT_{name}_')}")
    for number, name in sorted(_NAMES.items())
    for constant, detail in sorted(vars(libvirt).items())
    if constant.startswith(f"VIR_DOMAIN_EVENT_{name}_")
]


def event(uuid: str = "one", text: str = "STARTED BOOTED") -> DomainEvent:
    return DomainEvent(uuid, f"name of {uuid}", LifecycleEvent.STARTED, text)


def test_libvirt_has_the_details_that_are_compared() -> None:
    assert len(_NAMES) == 9
    assert len(_DETAILS) >= 39


@pytest.mark.parametrize(("number", "detail", "text"), _DETAILS)
def test_every_detail_has_libvirts_own_name(number: int, detail: int, text: str) -> None:
    assert parse_lifecycle(number, detail)[1] == text


@pytest.mark.parametrize(
    ("number", "detail", "kind"),
    [
        (libvirt.VIR_DOMAIN_EVENT_DEFINED, 0, LifecycleEvent.DEFINED_ADDED),
        (libvirt.VIR_DOMAIN_EVENT_DEFINED, 1, LifecycleEvent.DEFINED_UPDATED),
        (libvirt.VIR_DOMAIN_EVENT_UNDEFINED, 0, LifecycleEvent.UNDEFINED),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, 0, LifecycleEvent.STOPPED_SHUTDOWN),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, 1, LifecycleEvent.STOPPED_DESTROYED),
        (libvirt.VIR_DOMAIN_EVENT_STOPPED, 4, LifecycleEvent.STOPPED_OTHER),
        (libvirt.VIR_DOMAIN_EVENT_SHUTDOWN, 1, LifecycleEvent.SHUTDOWN),
        (libvirt.VIR_DOMAIN_EVENT_RESUMED, 0, LifecycleEvent.RESUMED),
    ],
)
def test_rb_04_soft_and_hard_reboots_differ(number: int, detail: int, kind: LifecycleEvent) -> None:
    assert parse_lifecycle(number, detail)[0] is kind


def test_numbers_of_a_newer_libvirt_stay_numbers() -> None:
    assert parse_lifecycle(99, 3) == (LifecycleEvent.OTHER, "EVENT 99 3")
    assert parse_lifecycle(libvirt.VIR_DOMAIN_EVENT_STARTED, 99) == (LifecycleEvent.STARTED, "STARTED 99")


async def test_a_reader_gets_its_domain_only_and_in_order() -> None:
    one, every = Subscription("one", 10), Subscription(None, 10)
    for uuid, text in (("one", "a"), ("two", "b"), ("one", "c")):
        for subscription in (one, every):
            subscription.publish(event(uuid, text))
    assert [(await anext(one)).text for _ in range(2)] == ["a", "c"]
    assert [(await anext(every)).text for _ in range(3)] == ["a", "b", "c"]


async def test_a_reader_that_lags_gets_what_came_before_then_an_error() -> None:
    subscription = Subscription(None, 2)
    for _ in range(5):
        subscription.publish(event())
    assert (await anext(subscription)).uuid == "one"
    assert (await anext(subscription)).uuid == "one"
    for _ in range(2):
        with pytest.raises(ExhaustedError) as caught:
            await anext(subscription)
        assert caught.value.reason is Reason.READER_TOO_SLOW


async def test_a_lost_connection_ends_every_reader_and_no_later_one() -> None:
    hub = EventHub(10, asyncio.get_running_loop())
    before, gone = hub.subscribe(None), hub.subscribe("one")
    hub.unsubscribe(gone)
    hub.end_all("lost")
    after = hub.subscribe(None)
    with pytest.raises(UnavailableError) as caught:
        await anext(before)
    assert caught.value.reason is Reason.LIBVIRT_UNAVAILABLE
    for quiet in (gone, after):
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(quiet), 0.01)
