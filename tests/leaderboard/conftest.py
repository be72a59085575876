"""What the leaderboard's tests share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.leaderboard.store import Store
from harness.report import Report


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where a store may be made."""
    return tmp_path / "leaderboard.sqlite"


@pytest.fixture
def stored(path: Path) -> Callable[..., Path]:
    """Enters reports, and says into which store."""

    def enter(*reports: Report) -> Path:
        with Store(path, "create") as store:
            for report in reports:
                store.enter(report)
        return path

    return enter
