"""Captured output of runs, without a traceback of the capturing helpers when Ctrl-C ends the demo or the UI.

Dagster mirrors a run's output with two small programs. A terminal sends Ctrl-C to them too, and one of them is Python
and complains. They end with their run anyway, so they are started deaf to it.
"""

from __future__ import annotations

import signal
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from dagster._core.storage.compute_log_manager import CapturedLogContext
from dagster._core.storage.local_compute_log_manager import LocalComputeLogManager


class ComputeLogs(LocalComputeLogManager):
    """Dagster's own files; only the interrupt does not reach what mirrors them."""

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> ComputeLogs:
        return cls(inst_data=inst_data, **config_value)

    @contextmanager
    def capture_logs(self, log_key: Sequence[str]) -> Generator[CapturedLogContext, None, None]:
        """As Dagster does; the helpers inherit a blocked SIGINT, the run itself keeps hearing it."""
        heard = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with super().capture_logs(log_key) as captured:
                signal.pthread_sigmask(signal.SIG_SETMASK, heard)
                yield captured
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, heard)
