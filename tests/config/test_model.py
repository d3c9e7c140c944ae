"""Every key of the model stands in docs/configuration.md, as it is; defaults are safe."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from hvsvc.config import Config
from hvsvc.config.load import allowed, section_model
from hvsvc.domain.limits import HostLimits

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"
UNITS = {"_s": "s", "_kib": "KiB", "_days": "days"}


def keys() -> Iterator[tuple[str, str, FieldInfo]]:
    for section, field in Config.model_fields.items():
        for key, setting in section_model(field).model_fields.items():
            yield section, key, setting


def shown_default(key: str, field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "required"
    if field.default is None:
        return "absent"
    if key == "unix_mode":
        return f"`0o{field.default:o}`"
    return f"`{json.dumps(field.default, default=str)}`"


def row(key: str, field: FieldInfo) -> str:
    unit = next((unit for end, unit in UNITS.items() if key.endswith(end)), "")
    cells = (f"`{key}`", shown_default(key, field), unit, allowed(field), field.description or "")
    return f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |"


def documented() -> dict[str, list[str]]:
    """The rows under each heading `## [section]`."""
    found: dict[str, list[str]] = {}
    section = ""
    for line in DOCUMENT.read_text().splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ").strip("`[]")
        elif line.startswith("| `"):
            found.setdefault(section, []).append(line)
    return found


def test_the_document_lists_every_key_with_its_default_unit_and_range() -> None:
    wanted: dict[str, list[str]] = {}
    for section, key, field in keys():
        wanted.setdefault(section, []).append(row(key, field))
    assert documented() == wanted


def test_every_key_says_what_it_is_for_and_what_it_allows() -> None:
    assert [key for _, key, field in keys() if not field.description or not allowed(field)] == []


def test_every_number_that_has_a_unit_says_it_last() -> None:
    plain = {"unix_mode", "calls_in_flight", "max_connections", "keepalive_count", "vcpu_overcommit_ratio"}
    plain |= {
        "memory_overcommit_ratio",
        "memory_floor_reserve_ratio",
        "max_operations",
        "max_rpcs",
        "page_size",
    }
    plain |= {"max_page_size", "watch_queue", "attempts"}
    numbers = {key for _, key, field in keys() if isinstance(field.default, int | float)}
    assert {key for key in numbers if not key.endswith(tuple(UNITS))} == plain


def test_an_empty_file_is_a_host_without_openstack_and_without_network() -> None:
    config = Config()
    assert config.libvirt.uri == "qemu:///system"
    assert config.listen.unix == "/run/hvsvc/hvsvc.sock"
    assert config.listen.unix_mode == 0o660
    assert str(config.journal.path) == "/var/lib/hvsvc/journal.db"
    open_to_the_network = (config.nova, config.tls, config.listen.tcp, config.listen.insecure_loopback_tcp)
    assert (*open_to_the_network, config.metrics.listen) == (None,) * 5


def test_settings_cannot_be_changed_after_the_start() -> None:
    config = Config()
    with pytest.raises(ValidationError, match="frozen"):
        config.libvirt.uri = "qemu:///session"
    with pytest.raises(ValidationError, match="frozen"):
        config.nova = None


def test_defaults_of_numbers_are_within_their_own_range() -> None:
    def numbers(model: BaseModel) -> dict[str, Any]:
        return {key: value for key, value in model if isinstance(value, int | float)}

    for section, field in Config.model_fields.items():
        model = section_model(field)
        required = {"cloud": "c"} if section == "nova" else {}
        if section != "tls":
            values = numbers(model(**required))
            assert numbers(model(**required, **values)) == values


def test_the_limits_reach_planning_each_in_its_place() -> None:
    limits = {
        "vcpu_overcommit_ratio": 2.0,
        "memory_overcommit_ratio": 1.0,
        "memory_floor_reserve_kib": 4096,
        "memory_floor_reserve_ratio": 0.25,
    }
    assert Config.model_validate({"limits": limits}).host_limits == HostLimits(**limits)  # type: ignore[arg-type]
    assert Config().host_limits == HostLimits()
