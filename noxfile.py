"""Sets everything up and runs it: `nox -s grade`, `nox -s tests`, `nox -s lint`, `nox -s bench`."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import nox

nox.options.default_venv_backend = "venv"
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["tests"]

PROJECT = nox.project.load_toml("pyproject.toml")


def device_group() -> str:
    """The dependency group that this machine's NVIDIA driver can run; "cpu" without a driver."""
    names = {"linux": "libcuda.so.1", "win32": "nvcuda.dll"}
    try:
        driver = ctypes.CDLL(names.get(sys.platform, ""))
        version = ctypes.c_int()
        if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return "cpu"
    except (OSError, AttributeError):
        return "cpu"
    if version.value >= 13000:
        return "cuda13"
    return "cuda12" if version.value >= 12000 else "cpu"


def install(session: nox.Session, *groups: str) -> None:
    """Install dependency groups once; a session without a venv uses what is there."""
    if not isinstance(session.virtualenv, nox.virtualenv.PassthroughEnv):
        session.install("-q", *nox.project.dependency_groups(PROJECT, *groups))


@nox.session
def grade(session: nox.Session) -> None:
    """Grade kernel files, or all of solutions/: nox -s grade -- my_kernel.cu."""
    harness(session, "grade")


@nox.session
def leaderboard(session: nox.Session) -> None:
    """Show the leaderboard: nox -s leaderboard -- --site site."""
    harness(session, "leaderboard")


@nox.session
def regrade(session: nox.Session) -> None:
    """Grade again what an older judge graded: nox -s regrade -- --yes."""
    harness(session, "regrade")


@nox.session
def calibrate(session: nox.Session) -> None:
    """Check the judge itself on this GPU: cuBLAS beside cuBLAS."""
    harness(session, "calibrate")


def harness(session: nox.Session, command: str) -> None:
    """Run a command of the judge; its exit code is nox's."""
    install(session, "judge", device_group())
    session.run("python", "-m", "harness", command, *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests; those that need a GPU are skipped where there is none."""
    install(session, "judge", device_group(), "test")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks."""
    install(session, "judge", device_group(), "test")
    benchmarks = [str(path) for path in sorted(Path("tests").rglob("bench_*.py"))]
    session.run("python", "-m", "pytest", "--benchmark-only", *(session.posargs or benchmarks))


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and types."""
    install(session, "judge", "cpu", "lint")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
