"""Progress on stderr: one line that is rewritten in a terminal, a plain line every few seconds elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from typing import TextIO

BAR_WIDTH = 24


class Progress:
    """Done, total, speed and time left of one long task.

    Parameters
    ----------
    label : str
        What is going on, e.g. ``"sft"``.
    total : int
        Units of work.
    done : int
        Units already done: a resumed task begins in the middle.
    every_s : float
        Seconds between two plain lines.
    stream : text file
        Where to write; standard error by default.
    """

    def __init__(
        self, label: str, total: int, *, done: int = 0, every_s: float = 5.0, stream: TextIO | None = None
    ) -> None:
        self.label, self.total = label, total
        self._stream = stream or sys.stderr
        self._terminal = self._stream.isatty()
        self._every_s = 0.1 if self._terminal else every_s
        self._started = time.monotonic()
        self._last = -float("inf")
        self._done_before = done

    def update(self, done: int, figures: Mapping[str, float] | None = None) -> None:
        """Say how far the task is, if it is time to, or the last unit is done."""
        now = time.monotonic()
        if now - self._last < self._every_s and done < self.total:
            return
        self._last = now
        speed = (done - self._done_before) / max(now - self._started, 1e-9)
        left = 0.0 if done >= self.total else (self.total - done) / speed if speed > 0 else float("inf")
        shown = "  ".join(f"{name} {value:.4g}" for name, value in (figures or {}).items())
        line = f"{self.label}  {done:,}/{self.total:,}  {shown}  {speed:.2f}/s  {_clock(left)} left"
        if self._terminal:
            filled = BAR_WIDTH * done // max(self.total, 1)
            line = f"\r[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {line}\x1b[K"
        self._stream.write(line + ("\n" if not self._terminal or done >= self.total else ""))
        self._stream.flush()


def _clock(seconds: float) -> str:
    return "?" if seconds == float("inf") else f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
