"""Numbers of options, within bounds; "nan" is none, though it is on neither side of any bound."""

from __future__ import annotations

import math
from typing import Any

import click


class WholeNumber(click.IntRange):
    """As `click.IntRange` with both bounds, refusing in plain words."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number.

        :raises click.BadParameter: for what is none, or out of bounds.
        """
        try:
            number: int = super().convert(value, param, ctx)
        except click.BadParameter:
            self.fail(f"{value!r} is not a whole number from {self.min} to {self.max}", param, ctx)
        return number


class Number(click.FloatRange):
    """As `click.FloatRange`, which lets "nan" through."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The number.

        :raises click.BadParameter: for what is none, or out of bounds.
        """
        number: float = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number", param, ctx)
        return number
