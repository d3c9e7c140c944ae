"""Messages as plain documents for `-f json|yaml|value` and for the tables.

Keys are the proto field names. What is not known stays absent, never null and never
zero: a field with presence that is not set, an empty string, an unspecified enum.
Lists, maps, booleans and plain numbers are always there (the vCPU of a pin may well
be 0). 64-bit integers are numbers; enums lose their prefix; timestamps are RFC 3339
and durations protobuf's JSON form.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

Document: TypeAlias = dict[str, Any]
#: field -> shape of its message; None for a value, ANY_KEYS for a map
Shape: TypeAlias = Mapping[str, "Shape | None"]

#: shape of a map: every key is allowed
ANY_KEYS: Shape = {"*": None}

_UNSPECIFIED = "UNSPECIFIED"


def document_of(message: Message) -> Document:
    """The message as a document."""
    document: Document = {}
    for field in message.DESCRIPTOR.fields:
        value = getattr(message, field.name)
        if field.has_presence:
            if message.HasField(field.name):
                document[field.name] = _plain(field, value)
        elif _is_map(field):
            document[field.name] = dict(value)
        elif not isinstance(value, (str, bytes, bool, int, float)):
            document[field.name] = [_plain(field, item) for item in value]
        elif (plain := _plain(field, value)) not in {"", None}:
            document[field.name] = plain
    return document


def shape_of(descriptor: Descriptor) -> dict[str, Shape | None]:
    """Every field that a document of this message can have."""
    return {field.name: _shape(field) for field in descriptor.fields}


def enum_word(enum: EnumDescriptor, number: int) -> str | None:
    """Name of the value without the enum's prefix; None for unspecified, the number where it is unknown."""
    value = enum.values_by_number.get(number)
    if value is None:
        return str(number)
    zero = enum.values_by_number[0].name
    word = value.name.removeprefix(zero.removesuffix(_UNSPECIFIED))
    return None if word == _UNSPECIFIED else word


def _plain(field: FieldDescriptor, value: Any) -> Any:
    if isinstance(value, (Timestamp, Duration)):
        return value.ToJsonString()
    if isinstance(value, Message):
        return document_of(value)
    if field.enum_type is not None:
        return enum_word(field.enum_type, value)
    return value


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def _shape(field: FieldDescriptor) -> Shape | None:
    if _is_map(field):
        return ANY_KEYS
    if field.message_type is None or field.message_type.full_name.startswith("google.protobuf."):
        return None
    return shape_of(field.message_type)
