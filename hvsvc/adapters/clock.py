"""Time as the machine tells it."""

from __future__ import annotations

import asyncio
import time


class SystemClock:
    """The `Clock` of a running daemon."""

    def now_s(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic_s(self) -> float:
        """Seconds of a clock that never jumps."""
        return time.monotonic()

    async def sleep(self, delay_s: float) -> None:
        """Waits without blocking the loop."""
        await asyncio.sleep(delay_s)
