"""Operation records as JSON text, and back, exactly.

Pydantic knows dataclasses, enums and tuples; only the error tree needs words of its
own. Text is kept as ASCII with escapes, so that a guest's or a hypervisor's message
with lone surrogates, which UTF-8 cannot hold, is kept as it was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ConfigDict, TypeAdapter, ValidationError
from pydantic_core import to_jsonable_python

from hvsvc import errors
from hvsvc.domain.operation import OperationRecord
from hvsvc.errors import HvsvcError, InvalidArgumentError, Reason, UnavailableError

#: a dict with a list under this key is an error: where else a dict has free keys, its values are text
_ERROR = "error"

_CLASSES: dict[str, type[HvsvcError]] = {
    name: item
    for name, item in vars(errors).items()
    if isinstance(item, type) and issubclass(item, HvsvcError)
}

# Pydantic does not let a dataclass be configured from outside, but a tuple of one. Errors are revived before.
_RECORD = TypeAdapter(tuple[OperationRecord], config=ConfigDict(arbitrary_types_allowed=True))


def encode(record: OperationRecord) -> str:
    """Writes a record as JSON text."""
    return json.dumps(to_jsonable_python(record, fallback=_encode_other), separators=(",", ":"))


def decode(text: str) -> OperationRecord:
    """Reads a record that `encode` wrote.

    :raises UnavailableError: JOURNAL_UNAVAILABLE; the text is damaged, or another
        version of hvsvc wrote it.
    """
    try:
        return _RECORD.validate_python((json.loads(text, object_hook=_revive),))[0]
    except (ValidationError, ValueError, TypeError, KeyError) as err:
        raise UnavailableError(
            Reason.JOURNAL_UNAVAILABLE,
            "an operation in the journal cannot be understood: it is damaged, or was written by another "
            "version of hvsvc; restore the journal from a backup, or move it away to begin with an empty one",
        ) from err


def _encode_other(value: object) -> object:
    if isinstance(value, HvsvcError):
        field = value.field if isinstance(value, InvalidArgumentError) else ""
        return {
            _ERROR: [type(value).__name__, value.reason, value.message, value.metadata, field, value.others]
        }
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no form in the journal")


def _revive(found: dict[str, Any]) -> object:
    content = found.get(_ERROR)
    if not isinstance(content, list):
        return found
    name, reason, message, metadata, field, others = content
    error = _CLASSES[name](Reason(reason), message, metadata)
    if isinstance(error, InvalidArgumentError):
        error.field = field
    error.others = tuple(others)
    return error
