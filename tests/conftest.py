"""What every test shares: no test waits for a device that another program holds."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="session", autouse=True)
def _locks_of_its_own(tmp_path_factory: pytest.TempPathFactory) -> None:
    pytest.MonkeyPatch().setenv("LANDORACLE_LOCKS", str(tmp_path_factory.mktemp("locks")))
