"""Which libraries a machine gets, when they are installed, and what sessions run."""

import ctypes
import importlib.util
import logging
import os
from pathlib import Path
from types import ModuleType

import nox.registry
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


class Session:
    """A session of nox that notes which modules of Python it runs, and runs none."""

    posargs = ()

    def __init__(self) -> None:
        self.ran: list[list[str]] = []

    def log(self, _: str) -> None: ...

    def run(self, _: str, *words: str, **__: object) -> None:
        self.ran.append([*words])


def test_libraries_are_installed_again_when_others_have_replaced_them(
    noxfile: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    noxfile.ENVIRONMENT.mkdir(parents=True)
    (tmp_path / "harness").mkdir()
    (tmp_path / "harness" / "module.py").touch()

    def installed(*groups: str) -> list[str]:
        session = Session()
        noxfile.install(session, *groups)
        return [words[1] for words in session.ran]

    everything = ["venv", "pip", "pip", "compileall"]
    assert installed("judge", "cpu") == everything
    assert installed("judge", "cpu") == []
    os.utime(noxfile.COMPILED, (0, 0))
    assert installed("judge", "cpu") == ["compileall"], "a module is newer"
    assert installed("judge", "cuda13", "arena") == everything
    assert installed("judge", "cpu") == [], "these are among the others"
    (earlier,) = noxfile.ENVIRONMENT.glob("installed-judge-cuda13-arena.txt")
    earlier.write_text(earlier.read_text().replace("llvmlite==0.50.0", "llvmlite==0.49.0"))
    (noxfile.ENVIRONMENT / "installed-judge-cpu.txt").unlink()
    assert installed("judge", "cpu") == everything
    assert not earlier.exists(), "a version that it names was replaced"


def test_tests_that_measure_times_run_alone(
    noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(noxfile, "install", lambda *_: None)
    monkeypatch.setattr(noxfile, "device_group", lambda: "cuda13")
    session = Session()
    noxfile.tests(session)
    first, last = session.ran
    assert "not gpu and not architectures" in first and {*noxfile.SIDE_BY_SIDE} < {*first}
    assert last == ["-m", "pytest", "-m", "gpu"]


def test_only_the_arena_needs_its_packages(
    noxfile: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[set[str]] = []
    monkeypatch.setattr(noxfile, "device_group", lambda: "cpu")
    monkeypatch.setattr(noxfile, "install", lambda _, *groups: asked.append({*groups}))
    monkeypatch.setattr(noxfile, "become", lambda *_: None)
    for command in ("arena", "grade"):
        nox.registry.get()[command](Session())
    assert asked == [{"judge", "cpu", "arena"}, {"judge", "cpu"}]
