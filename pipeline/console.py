"""What assets say while they run, on the terminal of `landoracle demo`: their own words, without Dagster's events."""

import logging
import re

import dagster as dg
from rich.console import Console

_PROGRESS = re.compile(r"^\w[\w +]*  [\d,]+/[\d,]+  ")  # as training.progress writes its lines


class _Words(logging.Handler):
    """Prints messages; a progress line replaces the one before it in a terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(highlight=False)
        self._on_progress_line = False

    def emit(self, record: logging.LogRecord) -> None:
        said = getattr(record, "dagster_meta", {})
        if said.get("dagster_event") is not None:
            return
        text = str(said.get("orig_message", record.getMessage()))
        is_progress = bool(_PROGRESS.match(text)) and self._console.is_terminal
        if self._on_progress_line and not is_progress:
            self._console.file.write("\n")
        self._on_progress_line = is_progress
        if is_progress:
            self._console.file.write(f"\r  {text}\x1b[K")
            self._console.file.flush()
        else:
            self._console.print(f"  {text}", style="dim", markup=False, soft_wrap=True)


@dg.logger(config_schema={})
def words(context: dg.InitLoggerContext) -> logging.Logger:
    """Information and above, as the assets word it."""
    logger = logging.Logger("landoracle", level=logging.INFO)
    logger.addHandler(_Words())
    return logger
