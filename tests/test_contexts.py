"""How many contexts a second there are is counted; the driver is made up."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.judge.workers.isolation import Role
from tests import contexts
from tests.forked import in_fork

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers fork there alone")


class Driver(SimpleNamespace):
    """Every call succeeds, or the last of each context does not."""

    def __init__(self, works: bool) -> None:
        last = 0 if works else 2
        super().__init__(
            cuInit=lambda _: 0,
            cuDeviceGet=lambda *_: 0,
            cuDevicePrimaryCtxRetain=lambda *_: last,
        )


@pytest.fixture
def unconfined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Role]:
    roles: list[Role] = []
    monkeypatch.setattr(contexts, "confine", lambda role, scratch: roles.append(role))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return roles


def test_one_after_the_other(
    unconfined: list[Role], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Driver(works=True))
    contexts.main(0.2)
    count, ms = capfd.readouterr().out.split()
    assert int(count) >= 1 and float(ms) > 0
    assert unconfined == [Role.CUDA]


def test_where_there_is_none_that_is_said(
    unconfined: list[Role], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: Driver(works=False))

    def work() -> str:
        with pytest.raises(SystemExit) as said:
            contexts.main(0.2)
        return str(said.value)

    assert in_fork(work) == "no context can be created"


def test_several_ask_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import os, sys; print(4 if os.environ['CUDA_VISIBLE_DEVICES'] == 'a' else 2, 50.0)"
    monkeypatch.setattr(contexts, "COMMAND", (sys.executable, "-c", program))
    assert contexts.rate(["a", "b"], 3, 2.0) == contexts.Rate(asking=3, a_second=5.0, ms=50.0)
