"""Install everything and run it: `nox -s grade`, `nox -s tests`, `nox --list` for the rest.

All sessions share one environment: the libraries are large, and the tests run the judge itself.
"""

from __future__ import annotations

import ast
import ctypes
import logging
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

import nox

if sys.platform != "linux":
    sys.exit("matmul-arena needs Linux; on Windows, run it in WSL 2.")

if sys.version_info < (3, 11):
    sys.exit(
        f"matmul-arena needs Python 3.11 or newer, and nox runs with {sys.version.split()[0]}: "
        "install nox with a newer Python."
    )

nox.needs_version = ">=2025.2"
nox.options.default_venv_backend = "none"
nox.options.sessions = ["tests"]

PROJECT = nox.project.load_toml("pyproject.toml")
ENVIRONMENT = Path(".nox", "environment")
COMPILED = ENVIRONMENT / "compiled.txt"
"""Its date is that of the last compilation of the project's modules."""
SOURCE_FOLDERS = ("harness", "problem", "lab")
CUDA_FOLDERS = ("problem", "solutions", "tests/submissions")
SIDE_BY_SIDE = ("--numprocesses=4", "--dist=worksteal")
"""Four processes, even on two cores, since tests often wait. More would need too much memory: some
submissions use all the memory that a worker may have."""

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Each process uses one BLAS thread. The threads of NumPy's products spin while they wait for each
other, which took half of the time of such tests."""

PROGRAMS = ENVIRONMENT / "bin"


def device_group() -> str:
    """Return the dependency group for this machine's NVIDIA driver; "cpu" without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        version = ctypes.c_int()
        if driver.cuInit(0) != 0 or driver.cuDriverGetVersion(ctypes.byref(version)) != 0:
            return "cpu"
    except (OSError, AttributeError):
        return "cpu"
    if version.value >= 13000:
        return "cuda13"
    if version.value >= 12000:
        return "cuda12"
    logging.getLogger("nox").warning(
        "The NVIDIA driver is too old: it runs CUDA up to %d.%d, and this needs 12.0. Update it "
        "for scores; until then the CPU device gives verdicts.",
        *divmod(version.value // 10, 100),
    )
    return "cpu"


def install(session: nox.Session, *groups: str) -> None:
    """Install dependency groups, and compile the project's modules, unless that has been done."""
    install_groups(session, *groups)
    # Workers may not write bytecode, so they would compile their modules again in each grading.
    files = (path for folder in SOURCE_FOLDERS for path in Path(folder).rglob("*.py"))
    newest = max(path.stat().st_mtime for path in files)
    if not COMPILED.is_file() or COMPILED.stat().st_mtime < newest:
        run(session, "-m", "compileall", "-q", *SOURCE_FOLDERS)
        COMPILED.touch()


def install_groups(session: nox.Session, *groups: str) -> None:
    """Install dependency groups into the environment, unless they are installed."""
    wanted = nox.project.dependency_groups(PROJECT, *groups)
    alone = nox.project.dependency_groups(PROJECT, "ptxas12" if "cuda12" in groups else "ptxas13")
    stamp = ENVIRONMENT / f"installed-{'-'.join(groups)}.txt"
    needed = (sys.version, *wanted, *alone)
    for earlier in ENVIRONMENT.glob("installed-*.txt"):
        if {*needed} <= {*earlier.read_text(encoding="utf-8").split("\n")}:
            return
    session.log(f"Installing libraries into {ENVIRONMENT}, once: one to two minutes, about 1 GB.")
    session.run(sys.executable, "-m", "venv", str(ENVIRONMENT), silent=True)
    pip = ("-m", "pip", "install", "--disable-pip-version-check")
    run(session, *pip, *wanted)
    run(session, *pip, "--no-deps", *alone)
    for earlier in ENVIRONMENT.glob("installed-*.txt"):
        known = earlier.read_text(encoding="utf-8").split("\n")
        if any(
            _packages(known).get(name, spec) != spec for name, spec in _packages(needed).items()
        ):
            earlier.unlink()  # what it says was installed has been replaced
    stamp.write_text("\n".join(needed), encoding="utf-8")
    COMPILED.unlink(missing_ok=True)  # perhaps by another Python


def _packages(requirements: Iterable[str]) -> dict[str, str]:
    """Return the requirements by the name of their package."""
    return {re.split(r"[\s<>=!~;\[]", each, maxsplit=1)[0]: each for each in requirements}


def run(session: nox.Session, *arguments: str, **environment: str) -> None:
    """Run the environment's Python, and let it write bytecode, which workers may only read."""
    environment["PYTHONDONTWRITEBYTECODE"] = ""
    session.run(str(PROGRAMS / "python"), *arguments, external=True, env=environment)


def become(*arguments: str) -> NoReturn:
    """Replace nox by the environment's Python, whose exit code is then the session's.

    Nox kills what it runs half a second after Ctrl-C. A command removes its files first. Sessions
    that are named after it do not run.
    """
    python = str(PROGRAMS / "python")
    os.execve(python, [python, *arguments], {**os.environ, "PYTHONDONTWRITEBYTECODE": ""})


def add_command(file: Path) -> None:
    """Add a session that runs a command of the judge and has its summary."""

    def command(session: nox.Session) -> None:
        install(session, "judge", device_group(), *(["arena"] if file.stem == "arena" else []))
        become("-m", "harness", file.stem, *session.posargs)

    command.__doc__ = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
    nox.session(command, name=file.stem)


for command_file in sorted(Path("harness", "cli", "commands").glob("[!_]*.py")):
    add_command(command_file)


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests, four at a time; tests of a GPU run alone, or are skipped without one.

    Tests that are named (nox -s tests -- -k name) run in one process.
    """
    device = device_group()
    install(session, "judge", device, "arena", "test")
    if session.posargs:
        run(session, "-m", "pytest", *session.posargs)
    elif device == "cpu":
        run(session, "-m", "pytest", *SIDE_BY_SIDE, **ONE_THREAD)
    else:  # no test may use the GPU while another one measures times on it
        run(
            session,
            "-m",
            "pytest",
            *SIDE_BY_SIDE,
            "-m",
            "not gpu and not architectures",
            **ONE_THREAD,
        )
        run(session, "-m", "pytest", "-m", "gpu")


@nox.session
def architectures(session: nox.Session) -> None:
    """Compile all solutions for all GPUs, and run the tests that take long."""
    install(session, "judge", device_group(), "arena", "test")
    run(session, "-m", "pytest", *SIDE_BY_SIDE, "-m", "architectures", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Run the benchmarks."""
    install(session, "judge", device_group(), "arena", "test")
    benchmarks = [str(path) for path in sorted(Path("lab").glob("bench_*.py"))]
    run(session, "-m", "pytest", "--benchmark-only", *(session.posargs or benchmarks))


@nox.session
def lab(session: nox.Session) -> None:
    """Run a tool of the judge's developers; nox -s lab -- --help lists them."""
    install(session, "judge", device_group(), "arena", "test")
    become("-m", "lab", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style and types of Python, its layers, and the style of CUDA."""
    install(session, "judge", device_group(), "arena", "test", "lint")
    run(session, "-m", "ruff", "check", ".")
    run(session, "-m", "ruff", "format", "--check", ".")
    run(session, "-m", "mypy")
    session.run(str(PROGRAMS / "lint-imports"), external=True)
    kernels = [str(path) for folder in CUDA_FOLDERS for path in sorted(Path(folder).rglob("*.cu"))]
    names = ENVIRONMENT / "kernels.txt"
    names.write_text("\n".join(kernels), encoding="utf-8")
    formatting = str(PROGRAMS / "clang-format"), "--dry-run", "--Werror", f"--files={names}"
    session.run(*formatting, external=True)
