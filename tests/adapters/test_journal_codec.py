"""Records survive the journal exactly, whatever is in them."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hvsvc import errors
from hvsvc.adapters.journal_codec import decode, encode
from hvsvc.domain import definition, facts, operation, outcome, steps, target, topology
from hvsvc.domain.operation import OperationRecord
from hvsvc.domain.target import Method, Target
from hvsvc.errors import GuestAgentError, HvsvcError, InvalidArgumentError, Reason, UnavailableError

CLASSES = [item for item in vars(errors).values() if isinstance(item, type) and issubclass(item, HvsvcError)]


@st.composite
def any_error(draw: st.DrawFn, nested: bool = True) -> HvsvcError:
    error: HvsvcError = draw(st.sampled_from(CLASSES))(
        draw(st.sampled_from(Reason)),
        draw(st.text()),
        draw(st.dictionaries(st.text(), st.text(), max_size=3)),
    )
    if isinstance(error, InvalidArgumentError):
        error.field = draw(st.text())
    if nested:
        error.others = tuple(draw(st.lists(any_error(nested=False), max_size=2)))
    return error


st.register_type_strategy(HvsvcError, any_error())
# Left alone, hypothesis leaves every field at its default where it has one.
for module in (definition, facts, operation, outcome, steps, target, topology):
    for item in vars(module).values():
        if isinstance(item, type) and dataclasses.is_dataclass(item) and item.__module__ == module.__name__:
            every_field = {field.name: ... for field in dataclasses.fields(item)}
            st.register_type_strategy(item, st.builds(item, **every_field))


def form(value: object) -> object:
    """Compares what == does not: errors by content, floats with NaN, types with their values."""
    if isinstance(value, HvsvcError):
        field = getattr(value, "field", None)
        return (type(value), value.reason, value.message, value.metadata, field, form(value.others))
    if dataclasses.is_dataclass(value):
        parts = {field.name: form(getattr(value, field.name)) for field in dataclasses.fields(value)}
        return (type(value), parts)
    if isinstance(value, tuple):
        return (tuple, [form(item) for item in value])
    if isinstance(value, Mapping):
        return {key: form(item) for key, item in value.items()}
    return (type(value), repr(value))


def record(**changes: object) -> OperationRecord:
    plain = OperationRecord(
        id="op-1",
        uuid="6b5f16a8-3a41-426d-8a29-7cd0beda2ea6",
        libvirt_name="instance-00000001",
        target=Target(Method.SET_VCPUS, vcpus=8),
        caller="unix",
        request_id="",
        create_time_s=1000.25,
    )
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


@settings(max_examples=100, deadline=None)
@given(st.from_type(OperationRecord))
def test_any_record_comes_back_as_it_was(written: OperationRecord) -> None:
    assert form(decode(encode(written))) == form(written)


def test_text_that_utf8_cannot_hold_comes_back_as_it_was() -> None:
    hostile = "guest said \ud800\x00 \N{PILE OF POO}"
    error = GuestAgentError(Reason.AGENT_REPLY_INVALID, hostile, {"reply": hostile})
    written = record(error=error, end_time_s=1001.0)

    text = encode(written)

    assert text.isascii()
    assert form(decode(text)) == form(written)


def test_metadata_named_as_the_mark_of_an_error_is_no_error() -> None:
    written = record(error=HvsvcError(Reason.INTERNAL, "m", {"error": "[]"}))
    found = decode(encode(written)).error
    assert found is not None
    assert found.metadata == {"error": "[]"}


def test_a_value_that_has_no_form_is_refused_when_it_is_written() -> None:
    with pytest.raises(TypeError, match="object has no form in the journal"):
        encode(record(caller=object()))


VALID = json.loads(encode(record(error=HvsvcError(Reason.INTERNAL, "m"))))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        json.dumps({key: value for key, value in VALID.items() if key != "target"}),
        json.dumps(VALID | {"create_time_s": "yesterday"}),
        json.dumps(VALID | {"target": VALID["target"] | {"method": "Explode"}}),
        json.dumps(VALID | {"error": {"error": ["NoSuchError", "INTERNAL", "m", {}, "", []]}}),
        json.dumps(VALID | {"error": {"error": ["HvsvcError", "NO_SUCH_REASON", "m", {}, "", []]}}),
        json.dumps(VALID | {"error": {"error": ["HvsvcError"]}}),
        json.dumps(VALID | {"error": {"error": [[], "INTERNAL", "m", {}, "", []]}}),
    ],
)
def test_damaged_text_is_told_apart_from_a_bug(text: str) -> None:
    with pytest.raises(UnavailableError, match="restore the journal") as caught:
        decode(text)
    assert caught.value.reason is Reason.JOURNAL_UNAVAILABLE
