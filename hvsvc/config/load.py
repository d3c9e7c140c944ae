"""Reads the settings from a TOML file and says everything that is wrong with them at once."""

from __future__ import annotations

import difflib
import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from hvsvc.config.model import Config
from hvsvc.errors import InvalidArgumentError, Reason

_SHOWN_VALUE_LENGTH = 80


def load_config(path: Path) -> Config:
    """Reads and checks the settings.

    :raises InvalidArgumentError: INVALID_VALUE; the file cannot be read or is not
        TOML, or the message lists every fault by key, value and what is allowed.
    """
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as err:
        raise _invalid(path, [f"cannot be read: {err.strerror}"]) from err
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as err:
        raise _invalid(path, [f"is not TOML: {err}"]) from err
    return parse_config(values, path)


def parse_config(values: Mapping[str, Any], path: Path) -> Config:
    """Checks settings that were read from `path`.

    :raises InvalidArgumentError: INVALID_VALUE, as for `load_config`.
    """
    try:
        config = Config.model_validate(values)
    except ValidationError as err:
        details = err.errors(include_url=False, include_context=False)
        # A key and its value can both be wrong, and are one fault then.
        raise _invalid(path, list(dict.fromkeys(_fault(detail, values) for detail in details))) from err
    if faults := list(_contradictions(config)):
        raise _invalid(path, faults)
    return config


def _invalid(path: Path, faults: list[str]) -> InvalidArgumentError:
    return InvalidArgumentError(
        Reason.INVALID_VALUE,
        "\n".join(f"{path}: {fault}" for fault in faults),
        {"file": path, "faults": len(faults)},
    )


def _contradictions(config: Config) -> Iterator[str]:
    listen, limits, drift = config.listen, config.limits, config.drift
    if config.placement.policy == "enforce" and config.nova is None:
        yield '[placement] policy = "enforce" needs [nova] with a cloud; without one nobody can be asked'
    if listen.tcp and not config.tls:
        yield (
            f'[listen] tcp = "{listen.tcp}" needs [tls] with cert, key and client_ca; without TLS only '
            "[listen] insecure_loopback_tcp is allowed"
        )
    if listen.tcp and not config.access.sans:
        yield (
            f'[listen] tcp = "{listen.tcp}" needs at least one caller in [access.sans]; as it stands nobody '
            "could do anything there"
        )
    if limits.page_size > limits.max_page_size:
        yield (
            f"[limits] page_size = {limits.page_size} exceeds max_page_size = {limits.max_page_size}; "
            "lower the one or raise the other"
        )
    if drift.backoff_s > drift.max_backoff_s:
        yield (
            f"[drift] backoff_s = {drift.backoff_s:g} exceeds max_backoff_s = {drift.max_backoff_s:g}; "
            "lower the one or raise the other"
        )


def _fault(details: ErrorDetails, values: Mapping[str, Any]) -> str:
    location = [str(part) for part in details["loc"]]
    section = Config.model_fields.get(location[0])
    if section is None:
        return f"[{location[0]}] is not known{_advice(location[0], Config)}"
    model = section_model(section)
    if len(location) == 1:
        return f"{location[0]} = {_show(details['input'])} is not allowed: [{location[0]}] is a table"
    name, key = location[0], location[1]
    field = model.model_fields.get(key)
    if field is None:
        return f"[{name}] {key} is not known{_advice(key, model)}"
    if details["type"] == "missing":
        return f"[{name}] {key} is missing; allowed: {allowed(field)}"
    value = values[name][key]
    if len(location) > 2 and isinstance(value, Mapping):
        name, key, value = f"{name}.{key}", _show(location[2]), value[location[2]]
    # a file's permissions are read and written as octal numbers
    shown = oct(value) if key.endswith("_mode") and type(value) is int else _show(value)
    return f"[{name}] {key} = {shown} is not allowed; allowed: {allowed(field)}"


def allowed(field: FieldInfo) -> str:
    """What a key may be set to, in words."""
    extra = field.json_schema_extra
    assert isinstance(extra, dict), "every key says what it allows"
    return str(extra["allowed"])


def section_model(field: FieldInfo) -> type[BaseModel]:
    """The model of a section, whether or not the section is optional."""
    candidates = [field.annotation, *getattr(field.annotation, "__args__", ())]
    return next(item for item in candidates if isinstance(item, type) and issubclass(item, BaseModel))


def _advice(key: str, model: type[BaseModel]) -> str:
    close = difflib.get_close_matches(key, model.model_fields, n=1)
    known = ", ".join(model.model_fields)
    return f"; did you mean {close[0]}?" if close else f"; known: {known}"


def _show(value: object) -> str:
    text = json.dumps(value, default=str)
    return text if len(text) <= _SHOWN_VALUE_LENGTH else f"{text[:_SHOWN_VALUE_LENGTH]}…"
