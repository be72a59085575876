"""Which libraries a machine gets, and when modules are compiled."""

import ctypes
import importlib.util
import logging
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def noxfile() -> ModuleType:
    spec = importlib.util.spec_from_file_location("noxfile", ROOT / "noxfile.py")
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        spec.loader.exec_module(module)
    return module


class Driver:
    """libcuda, as far as it is asked."""

    def __init__(self, version: int, status: int = 0) -> None:
        self.version, self.status = version, status

    def cuInit(self, flags: int) -> int:
        return self.status

    def cuDriverGetVersion(self, version: object) -> int:
        ctypes.cast(version, ctypes.POINTER(ctypes.c_int))[0] = self.version  # type: ignore[arg-type]
        return 0


@pytest.mark.parametrize(
    ("version", "status", "group"),
    [
        *((11040, 0, "cpu"), (12000, 0, "cuda12"), (12090, 0, "cuda12"), (13000, 0, "cuda13")),
        (13000, 100, "cpu"),  # a driver without a GPU
        (None, 0, "cpu"),  # no driver
    ],
)
def test_libraries_are_those_that_the_driver_can_run(
    noxfile: ModuleType,
    version: int | None,
    status: int,
    group: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def driver(name: str) -> Driver:
        if version is None:
            raise OSError(f"{name}: cannot open shared object file")
        return Driver(version, status)

    monkeypatch.setattr(ctypes, "CDLL", driver)
    with caplog.at_level(logging.WARNING, "nox"):
        assert noxfile.device_group() == group
    assert group in noxfile.PROJECT["dependency-groups"]
    is_old = version == 11040
    assert ("up to 11.4" in caplog.text and "Update" in caplog.text) is is_old
