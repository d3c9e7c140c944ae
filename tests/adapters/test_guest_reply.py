"""The agent's replies, read as hostile."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hvsvc.adapters.guest_reply import parse_cpus, parse_enabled_commands, parse_frozen, parse_processed
from hvsvc.domain.facts import GuestCpu
from hvsvc.errors import GuestAgentError, Reason


def cpu(number: object, online: object = True, **more: object) -> dict[str, object]:
    return {"logical-id": number, "online": online, **more}


def said(value: object) -> str:
    return json.dumps({"return": value})


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["return", "logical-id", "online", "can-offline", "name"]), inner, max_size=4
        )
    ),
    max_leaves=12,
)


def test_cpu_15_ids_need_not_be_contiguous_nor_ordered() -> None:
    cpus = parse_cpus(said([cpu(7, online=False), cpu(0), cpu(1)]))
    assert cpus.ids == {0, 1, 7}
    assert (cpus.present, cpus.online) == (3, 2)
    assert cpus.offline_ids == {7}
    assert [one.id for one in cpus.cpus] == [0, 1, 7]


def test_ga_04_can_offline_missing_means_unknown() -> None:
    reply = said([cpu(0), cpu(1, **{"can-offline": True}), cpu(2, **{"can-offline": False})])
    assert parse_cpus(reply).cpus == (
        GuestCpu(0, online=True, can_offline=None),
        GuestCpu(1, online=True, can_offline=True),
        GuestCpu(2, online=True, can_offline=False),
    )


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param("", id="empty"),
        pytest.param("null", id="null"),
        pytest.param('{"return": [{"logical-id": 0, "onl', id="truncated"),
        pytest.param('{"error": {}}', id="no return"),
        pytest.param(said(None), id="return null"),
        pytest.param(said({}), id="return object"),
        pytest.param(said([]), id="no CPU"),
        pytest.param(said([cpu(0, online=False)]), id="none online"),
        pytest.param(said([None]), id="null entry"),
        pytest.param(said([{"online": True}]), id="no id"),
        pytest.param(said([{"logical-id": 0}]), id="no state"),
        pytest.param(said([cpu(-1)]), id="negative id"),
        pytest.param(said([cpu(2**32)]), id="huge id"),
        pytest.param(said([cpu(True)]), id="boolean id"),
        pytest.param(said([cpu("0")]), id="text id"),
        pytest.param(said([cpu(0.0)]), id="float id"),
        pytest.param(said([cpu(0, online=1)]), id="number state"),
        pytest.param(said([cpu(0, **{"can-offline": "no"})]), id="text can-offline"),
        pytest.param(said([cpu(0), cpu(0, online=False)]), id="twice"),
        pytest.param(said([cpu(number) for number in range(8193)]), id="too many"),
        pytest.param('{"return":' + "[" * 50_000 + "]" * 50_000 + "}", id="deep"),
        pytest.param('{"return":' + "1" * 5000 + "}", id="long number"),
        pytest.param('{"return": []' + " " * (1 << 20) + "}", id="large"),
    ],
)
def test_ga_03_what_is_no_list_of_cpus_is_refused(reply: str) -> None:
    with pytest.raises(GuestAgentError) as caught:
        parse_cpus(reply)
    assert caught.value.reason is Reason.AGENT_REPLY_INVALID
    assert caught.value.metadata == {"command": "guest-get-vcpus"}
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    "parse", [parse_cpus, parse_frozen, parse_enabled_commands, lambda r: parse_processed(r, 3)]
)
@given(value=_JSON)
def test_ga_03_no_reply_breaks_a_parser(parse: Callable[[str], object], value: object) -> None:
    for reply in (json.dumps(value), said(value), said([value, value])):
        try:
            parse(reply)
        except GuestAgentError as err:
            assert err.reason is Reason.AGENT_REPLY_INVALID  # noqa: PT017  the only error there may be


@given(st.text(max_size=200))
def test_ga_03_no_text_breaks_a_parser(text: str) -> None:
    with pytest.raises(GuestAgentError):
        parse_cpus(text)


def test_processed_is_one_to_what_was_asked() -> None:
    assert [parse_processed(said(number), 3) for number in (1, 2, 3)] == [1, 2, 3]
    for wrong in (0, 4, -1, True, "2", None):
        with pytest.raises(GuestAgentError) as caught:
            parse_processed(said(wrong), 3)
        assert caught.value.reason is Reason.AGENT_REPLY_INVALID


def test_ga_06_frozen_or_thawed_and_nothing_else() -> None:
    assert parse_frozen(said("frozen")) is True
    assert parse_frozen(said("thawed")) is False
    wrongs: list[object] = ["FROZEN", None, ["frozen"], {}]
    for wrong in wrongs:
        with pytest.raises(GuestAgentError):
            parse_frozen(said(wrong))


def test_ga_02_only_enabled_commands_count() -> None:
    reply = said(
        {
            "version": "7.2",
            "supported_commands": [
                {"name": "guest-get-vcpus", "enabled": True},
                {"name": "guest-set-vcpus", "enabled": False},
                {"name": "guest-exec"},
            ],
        }
    )
    assert parse_enabled_commands(reply) == {"guest-get-vcpus"}
