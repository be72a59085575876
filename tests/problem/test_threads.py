"""As many threads as cores that may be used, on any system."""

from __future__ import annotations

import os

import pytest

from problem.threads import available_cores


def test_cores_that_belong_to_others_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 4, 7}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 16)
    assert available_cores() == 3


@pytest.mark.parametrize(("cores", "usable"), [(6, 6), (None, 1)])
def test_without_affinity_all_cores_are_available(
    monkeypatch: pytest.MonkeyPatch, cores: int | None, usable: int
) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    assert available_cores() == usable
