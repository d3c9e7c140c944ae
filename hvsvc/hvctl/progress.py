"""Shows the steps of a running operation on a terminal, with the time each takes."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Final, Self

from google.longrunning.operations_pb2 import Operation
from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from hvsvc.hvctl.document import Document, document_of
from hvsvc.hvctl.operation import steps_of
from hvsvc.hvctl.step_text import duration_text, kind_text, remark, seconds_text, state_word

_STYLES: Final = {
    "done": "green",
    "failed": "bold red",
    "unconfirmed": "yellow",
    "running": "bold",
    "pending": "dim",
}


class StepDisplay:
    """A live list of steps on stderr.

    A running step's time is measured here, from when it was first seen running: the
    clocks of the two hosts may differ. A finished one shows what the service measured.
    """

    def __init__(self) -> None:
        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._steps: list[Document] = []
        self._first_seen_s: dict[int, float] = {}
        self._note = ""
        self._spinner = Spinner("line")
        self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, err: BaseException | None, tb: TracebackType | None
    ) -> None:
        self._live.stop()

    def seen(self, operation: Operation) -> None:
        """Show this report."""
        self._steps = [document_of(step) for step in steps_of(operation)]
        for number, step in enumerate(self._steps):
            if step.get("state") == "RUNNING":
                self._first_seen_s.setdefault(number, time.monotonic())
        self._note = ""
        self._live.refresh()

    def lost(self) -> None:
        """Say that the service cannot be reached for now."""
        self._note = "connection lost; the operation goes on; trying again"
        self._live.refresh()

    def _render(self) -> Table:
        table = Table.grid(padding=(0, 2, 0, 0))
        for number, step in enumerate(self._steps):
            state = state_word(step)
            running = state == "running"
            took = (
                seconds_text(time.monotonic() - self._first_seen_s[number])
                if running
                else duration_text(step)
            )
            table.add_row(
                self._spinner if running else Text(" "),
                Text(state, style=_STYLES.get(state, "")),
                Text(kind_text(step)),
                Text(took, justify="right"),
                Text(remark(step), style="dim"),
            )
        if self._note:
            table.add_row(Text("!"), Text("lost", style="yellow"), Text(self._note))
        return table
