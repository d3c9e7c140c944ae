"""Numbers of options, within bounds; "nan" is none, though it is on neither side of any bound."""

from __future__ import annotations

import math
from typing import Any

import click


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
