"""Page tokens: opaque to callers, bound to the filter they were made for, hostile when they come back.

A token holds only where the page before ended, so a forged one reads another page
and nothing more; it needs no secret.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hvsvc.errors import InvalidArgumentError, Reason
from hvsvc.service.conversion.fields import UUID_FORM

_MAX_TOKEN_CHARS: Final = 512
_DIGEST_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class PageLimits:
    """How many entries a page holds where the caller does not say, and at most."""

    default: int
    maximum: int

    def size(self, asked: int) -> int:
        """The page size asked for; 0 asks for the default.

        :raises InvalidArgumentError: INVALID_VALUE for a negative one or one above the maximum.
        """
        if not 0 <= asked <= self.maximum:
            raise InvalidArgumentError(
                Reason.INVALID_VALUE,
                f"page_size is {asked}; allowed are 1 to {self.maximum}, or 0 for {self.default}",
                {"value": asked, "maximum": self.maximum},
                field="page_size",
            )
        return asked or self.default


def domain_token(filters: Sequence[object], last_uuid: str) -> str:
    """Token of the page that begins after this domain."""
    return _encode(filters, last_uuid)


def domain_cursor(filters: Sequence[object], token: str) -> str:
    """The uuid the page before ended with; "" for the first page.

    :raises InvalidArgumentError: INVALID_VALUE for a token that was not made for these filters.
    """
    if not token:
        return ""
    cursor = _decode(filters, token)
    if not isinstance(cursor, str) or not UUID_FORM.fullmatch(cursor):
        raise _bad_token()
    return cursor


def operation_token(filters: Sequence[object], last: tuple[float, str]) -> str:
    """Token of the page that begins after the operation with this (creation time, id)."""
    return _encode(filters, list(last))


def operation_cursor(filters: Sequence[object], token: str) -> tuple[float, str] | None:
    """(creation time, id) the page before ended with; None for the first page.

    :raises InvalidArgumentError: INVALID_VALUE for a token that was not made for these filters.
    """
    if not token:
        return None
    match _decode(filters, token):
        case [int() | float() as time_s, str() as operation_id] if not isinstance(time_s, bool):
            if math.isfinite(time_s) and len(operation_id) <= 64:
                return float(time_s), operation_id
    raise _bad_token()


def _encode(filters: Sequence[object], cursor: object) -> str:
    text = json.dumps(cursor, separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(_digest(filters) + text).rstrip(b"=").decode()


def _decode(filters: Sequence[object], token: str) -> object:
    if len(token) > _MAX_TOKEN_CHARS:
        raise _bad_token()
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as err:
        raise _bad_token() from err
    if raw[:_DIGEST_BYTES] != _digest(filters):
        raise _bad_token()
    try:
        decoded: object = json.loads(raw[_DIGEST_BYTES:])
    except (ValueError, RecursionError) as err:
        raise _bad_token() from err
    return decoded


def _digest(filters: Sequence[object]) -> bytes:
    return hashlib.sha256(json.dumps(filters).encode()).digest()[:_DIGEST_BYTES]


def _bad_token() -> InvalidArgumentError:
    return InvalidArgumentError(
        Reason.INVALID_VALUE,
        "page_token was not made for this request: give next_page_token of the reply before with the other"
        " fields as they were, or leave it out to begin again",
        field="page_token",
    )
