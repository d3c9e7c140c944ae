"""What a section of the settings is made of: keys with a default, what they allow, and what they are for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.config import JsonDict


def number(default: float, low: float, high: float, meaning: str) -> Any:
    """A key that takes a number."""
    allowed: JsonDict = {"allowed": f"{low} to {high}"}
    return Field(
        default, ge=low, le=high, allow_inf_nan=False, description=meaning, json_schema_extra=allowed
    )


def whole(default: int, low: int, high: int, meaning: str) -> Any:
    """A key that takes a whole number."""
    allowed: JsonDict = {"allowed": f"{low} to {high}, whole"}
    return Field(default, ge=low, le=high, description=meaning, json_schema_extra=allowed)


def setting(default: Any, allowed: str, meaning: str) -> Any:
    """A key that takes what `allowed` says."""
    return Field(default, description=meaning, json_schema_extra={"allowed": allowed})


class Section(BaseModel):
    """A table of the file: frozen, no unknown keys, no conversions."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)
