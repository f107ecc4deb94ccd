"""What every test shares: no test waits for a device that another program holds, and Ctrl-C is heard.

A shell that starts the suite in the background lets it ignore SIGINT, and its children inherit that.
"""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def _locks_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.MonkeyPatch().setenv("LANDORACLE_LOCKS", str(tmp_path_factory.mktemp("locks")))


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)
