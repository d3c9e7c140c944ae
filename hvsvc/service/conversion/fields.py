"""Checks of single request fields: every refusal names the field, the value and what is allowed.

Absent and zero are told apart by the callers of these functions (case CPU-08).
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, Protocol, TypeVar

from google.protobuf.message import Message

from hvsvc.errors import InvalidArgumentError, Reason

#: libvirt keeps counts in an unsigned int; no machine type it knows comes near this
MAX_VCPUS: Final = 65_535
#: 8 EiB in KiB: the largest integer every JSON reader of a reply can hold exactly
MAX_MEMORY_KIB: Final = 2**53
#: a Nova server name has at most 255 characters; libvirt's own limit is the same
MAX_NAME_CHARS: Final = 255

UUID_FORM: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_REQUEST_ID_FORM: Final = re.compile(UUID_FORM.pattern, re.IGNORECASE)
_ETAG_FORM: Final = re.compile(r"[0-9A-Za-z:_=+/.-]{1,128}")
_OPERATION_FORM: Final = re.compile(r"operations/([0-9A-Za-z_-]{1,64})")


T = TypeVar("T")


class EnumNames(Protocol):
    """What is used of a generated enum."""

    def Name(self, number: Any) -> str:  # noqa: N802 - protobuf's own word
        """Name of a number."""
        ...


def domain_name(value: str, field: str = "name") -> str:
    """A domain's name in any of the accepted forms, not yet resolved."""
    return _text(value, field, "a domain as domains/{uuid}, uuid, libvirt name or Nova server name")


def server_name(value: str, field: str) -> str:
    """Id or name of a Nova server; "" where none is asked."""
    return _text(value, field, "a Nova server's id or name") if value else ""


def operation_id(name: str, field: str = "name") -> str:
    """The id in `operations/{id}`."""
    found = _OPERATION_FORM.fullmatch(name)
    if found is None:
        raise _invalid(field, f"{_shown(name)} is no operation's name; it has the form operations/{{id}}")
    return found[1]


def count(message: Message, field: str) -> int | None:
    """A number of vCPUs, 1 to MAX_VCPUS; None where the field is absent."""
    return _number(message, field, MAX_VCPUS, "")


def size_kib(message: Message, field: str) -> int | None:
    """An amount of memory, 1 KiB to 8 EiB; None where the field is absent."""
    return _number(message, field, MAX_MEMORY_KIB, " KiB")


def factor(value: int, field: str, *, zero_is_one: bool = False) -> int:
    """A factor of a topology, 1 to MAX_VCPUS; with `zero_is_one`, 0 stands for 1."""
    if value == 0 and zero_is_one:
        return 1
    if not 1 <= value <= MAX_VCPUS:
        raise _invalid(field, f"{field} is {value}; allowed are 1 to {MAX_VCPUS}", maximum=MAX_VCPUS)
    return value


def choice(choices: Mapping[int, T], names: EnumNames, value: int, field: str) -> T:
    """What an enum's number stands for; proto3 lets any number through."""
    if value not in choices:
        known = ", ".join(names.Name(number) for number in choices if number)
        raise _invalid(field, f"{field} is {value}, which this version does not know; it knows {known}")
    return choices[value]


def etag(value: str, field: str = "etag") -> str:
    """An etag as a reply gave it; "" where none is asked."""
    if value and not _ETAG_FORM.fullmatch(value):
        raise _invalid(
            field, f"etag {_shown(value)} is none of hvsvc's; give Domain.etag as it is, or nothing"
        )
    return value


def request_id(value: str, field: str = "request_id") -> str:
    """A UUID in lower case; "" where none is given."""
    if not value:
        return ""
    if not _REQUEST_ID_FORM.fullmatch(value) or value.strip("0-") == "":
        raise _invalid(
            field, f"request_id {_shown(value)} is no UUID; give a new random UUID for each request"
        )
    return value.lower()


def _number(message: Message, field: str, maximum: int, unit: str) -> int | None:
    if not message.HasField(field):
        return None
    value: int = getattr(message, field)
    if not 1 <= value <= maximum:
        raise _invalid(field, f"{field} is {value}{unit}; allowed are 1 to {maximum}{unit}", maximum=maximum)
    return value


def _text(value: str, field: str, what: str) -> str:
    if not value or value != value.strip():
        raise _invalid(field, f"{field} is {_shown(value)}; give {what}")
    if len(value) > MAX_NAME_CHARS:
        raise _invalid(field, f"{field} has {len(value)} characters; the longest name has {MAX_NAME_CHARS}")
    if any(unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp") for char in value):
        raise _invalid(field, f"{field} {_shown(value)} holds control characters; give {what}")
    return value


def _invalid(field: str, message: str, **metadata: object) -> InvalidArgumentError:
    return InvalidArgumentError(Reason.INVALID_VALUE, message, metadata, field=field)


def _shown(value: str) -> str:
    return ascii(value if len(value) <= 64 else value[:63] + "…") if value else "empty"
