"""Every documented command does what the text says, in a clean clone with a smaller ranked size.

Commands on indented lines of the documents and in the examples of each --help are run as they are
written. A command that is neither in commands.csv nor in ELSEWHERE fails the test of coverage.
"""

import csv
import importlib
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.devices.available import why_no_cuda
from harness.judge.tune.tunable import find_tunables
from problem.cases import QUICK_CASES
from problem.problem import Problem
from tests.sources import KERNEL

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = (
    "README.md",
    "problem/README.md",
    "solutions/README.md",
    "reports/README.md",
    "SECURITY.md",
    "CONTRIBUTING.md",
    "harness/arena/README.md",
    "harness/ptxcpu/README.md",
)
COMMANDS = sorted(path.stem for path in (ROOT / "harness/cli/commands").glob("[!_]*.py"))
ENVIRONMENT = ROOT / ".nox" / "environment"

TUNABLE = f"constexpr int STEP = 1;  // tune: 1 2\n{KERNEL.replace('n++', 'n += STEP')}"
"""A kernel that is right with one of its values."""

NEEDS_GPU = (2, "GPU")
"""The outcome on a machine without one."""

FIRST = "python3 -m pip install nox && python3 -m nox -s grade -- my_kernel.cu"
"""The README's first command."""

with Path(__file__).with_name("commands.csv").open(encoding="utf-8", newline="") as file:
    RUN = {row["command"]: (int(row["exit code"]), row["words"]) for row in csv.DictReader(file)}
"""The exit code and words of the output of each command, without its comment."""

AS_WRITTEN = (
    FIRST,
    "python3 -m harness export --source ada/tile > tile.cu",
    "nox -s export > contest.jsonl",
)
"""Those that are run by a shell."""

ELSEWHERE = {
    r"nox -s (lint|tests)|-m pytest": ".ci/run",
    r"harness arena|-s arena|harness worker|-s worker|--arena ": "tests/arena",
    r"arena-data": "tests/arena",
    r"postgresql://": "tests/board",
    r"keys --(trust|distrust)": "tests/board",
    r"regrade --gpu": "tests/board",
    r"--submit --author": "tests/faults",
}
"""Commands that need a server, a person or minutes, and the tests that run them."""


def documented() -> Iterator[tuple[str, str]]:
    starts = r"(?:nox -s|python3 -m (?:pip install nox|nox|harness)) ?"
    for name in DOCUMENTS:
        text = (ROOT / name).read_text(encoding="utf-8")
        for line in re.findall(rf"^    ({starts}.*)$", text, re.MULTILINE):
            yield re.split(r" {2,}", line)[0], name
    for command in COMMANDS:
        text = importlib.import_module(f"harness.cli.commands.{command}").__doc__
        for line in re.findall(rf"^ {{2,4}}({starts}.*)$", text, re.MULTILINE):
            yield line, f"harness {command} --help"


def first_output() -> Iterator[str]:
    """Yield each line of the output in the README as a pattern: other runs have other numbers, and
    a slow machine checks the bounds in fewer blocks."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = re.search(r"\n\n((?:    .*\n)+)", text[text.index(FIRST) + len(FIRST) :])
    for line in shown[1].replace(", bounds checked in all", "").splitlines():
        pattern = re.escape(" ".join(line.split()))
        yield re.sub(r"[0-9]+(\\\.[0-9]+)?", r"[0-9]+(\\.[0-9]+)?", pattern)


def same(command: str) -> str:
    """Return the command in a normal form: nox and python3 -m harness run the same."""
    command = re.sub(r"^python3 -m pip install nox && ", "", command)
    command = re.sub(r"^(?:python3 -m )?nox -s (\w+)(?: --)?", r"harness \1", command)
    return command.replace("python3 -m harness", "harness").strip()


def test_every_documented_command_is_run_by_a_test() -> None:
    known = {same(command) for command in RUN}
    missing = [
        f"{where}: {command}"
        for command, where in documented()
        if same(command) not in known
        and not any(re.search(pattern, command) for pattern in ELSEWHERE)
    ]
    assert missing == []
    handed_out = {same(command) for command, _ in documented()}
    assert {command for command in RUN if same(command) not in handed_out} == set()
    assert all((ROOT / tests).exists() for tests in ELSEWHERE.values())


def test_documents_name_only_sessions_that_exist() -> None:
    own = re.findall(r"^def (\w+)", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    for name in DOCUMENTS:
        named = set(re.findall(r"nox -s ([a-z]+)", (ROOT / name).read_text(encoding="utf-8")))
        assert named <= {*COMMANDS, *own}, name


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tracked files with their bytecode, as an installation leaves them, the environment, and
    the files that the examples name."""
    if not ENVIRONMENT.exists():
        pytest.skip("there is no environment of nox")
    folder = tmp_path_factory.mktemp("clone")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listed.returncode != 0:
        pytest.skip("this is no checkout")
    for name in listed.stdout.decode().rstrip("\0").split("\0"):
        if (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    for package in ("harness", "problem", "lab"):
        for bytecode in (ROOT / package).rglob("__pycache__"):
            shutil.copytree(bytecode, folder / bytecode.relative_to(ROOT))
    (folder / ".nox").symlink_to(ROOT / ".nox")
    cases = folder / "problem" / "cases.py"
    text = cases.read_text(encoding="utf-8")
    assert "Shape(8192, 6144, 4096)" in text
    cases.write_text(text.replace("Shape(8192, 6144, 4096)", "Shape(1024, 768, 512)"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (folder / "my_kernel.cu").write_text(readme.partition("```cuda\n")[2].partition("```")[0])
    (folder / "tunable.cu").write_text(TUNABLE)
    for name in ("tile.cu", "one.cu", "other.cu", "old.cu"):
        shutil.copy(folder / "my_kernel.cu", folder / name)
    programs = folder / "bin"
    programs.mkdir()
    python, base = ENVIRONMENT / "bin" / "python", Path(sys.base_prefix) / "bin" / "python3"
    _script(programs / "nox", f'exec {python} -m nox "$@"')
    _script(
        programs / "python3",
        # nox is in the environment, and pip does nothing; the system's Python runs all other
        # modules.
        f'case "$2" in nox) exec {python} "$@";; pip) exit 0;; *) exec {base} "$@";; esac',
    )
    _script(programs / "jq", f'exec {python} -c "import sys; sys.stdout.write(sys.stdin.read())"')
    return folder


@pytest.fixture
def contest(
    clone: Path,
    shared_workers: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Path:
    """The clone with a result in its store, and with files of it. Few cases are graded."""
    monkeypatch.chdir(clone)
    monkeypatch.setattr(Problem, "cases", lambda *_, **how: QUICK_CASES[:3])
    if not Path("contest.jsonl").exists():
        submit = "grade --quick --device cpu --author ada --submit --json report.json tile.cu"
        assert main(submit.split()) == 0, capsys.readouterr()
        capsys.readouterr()
        assert main(["export"]) == 0
        Path("contest.jsonl").write_text(capsys.readouterr().out)
    return clone


def _script(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def shell(folder: Path, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=500,
        env={
            "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(Path.home()),
            "LANG": "C.UTF-8",
        },
        check=False,
    )


@pytest.mark.parametrize("command", RUN)
def test_a_documented_command_does_what_the_text_says(
    command: str, contest: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Most run in this process, to save the start of others; some run as they are written."""
    code, words = RUN[command]
    if (code, words) == NEEDS_GPU and why_no_cuda() is None:
        pytest.skip("there is a GPU here")
    run = command
    if " tune " in command:
        run = re.sub(r"\S+\.cu$", "tunable.cu", command)  # the variants of others take minutes
        assert find_tunables((ROOT / "solutions/13_async_copies.cu").read_text()).count > 2
    if command in AS_WRITTEN:
        done = shell(contest, run)
        assert done.returncode == code, done.stdout + done.stderr
        assert words in done.stdout + done.stderr
        if command == FIRST:
            printed = " ".join(done.stdout.split())
            assert [line for line in first_output() if not re.search(line, printed)] == []
        return
    wanted, _, kept = re.sub(r" \| jq .*", "", same(run)).partition(" > ")
    arguments = [
        found
        for word in shlex.split(wanted)[1:]
        for found in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    if arguments[0] == "explain" and "--shape" not in arguments:
        arguments += ["--shape", "256x128x256"]  # the ranked size takes seconds longer
    assert main(arguments) == code
    said = capsys.readouterr()
    if kept:
        Path(kept).write_text(said.out)
    assert words in said.out + said.err
