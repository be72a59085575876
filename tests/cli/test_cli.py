"""The command line, as a user and as a program meets it."""

import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.arena.processes import Settings
from harness.board.keys import SigningKey
from harness.board.sqlite_file import FileStore
from harness.cli.main import main, parse
from harness.judge.doctor import Check
from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from harness.protocol.errors import StoreError
from harness.protocol.report import JudgeError, Report, Stage, Verdict, WrongAnswer
from problem.cases import Shape
from tests.board import factory
from tests.forked import python
from tests.sources import BROKEN, kernel

pytestmark = pytest.mark.usefixtures("shared_workers")

ROOT = Path(__file__).resolve().parent.parent.parent


def harness(
    *arguments: str | Path,
    python: tuple[str, ...] = (sys.executable,),
    cwd: Path = ROOT,
    only: dict[str, str] | None = None,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own. only: the environment, instead of this one's."""
    return subprocess.run(
        [*python, "-m", "harness", *map(str, arguments)],
        cwd=cwd,
        capture_output=True,
        text=True,
        encoding=environment.get("PYTHONIOENCODING", "utf-8"),
        timeout=300,
        env=only or os.environ | environment,
        check=False,
    )


def called(
    capsys: pytest.CaptureFixture[str], *arguments: str | Path
) -> tuple[int | str | None, str, str]:
    """Run a command in this process: its exit code, standard output and standard error."""
    code: int | str | None
    try:
        code = main([*map(str, arguments)])
    except SystemExit as ended:
        code = ended.code
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "broken.cu"
    path.write_text(BROKEN)
    return path


COMMANDS = sorted(path.stem for path in (ROOT / "harness" / "cli" / "commands").glob("[!_]*.py"))


def test_help_names_every_command_and_needs_no_heavy_library() -> None:
    done = harness("--help", PYTHONPROFILEIMPORTTIME="1")
    assert done.returncode == 0
    for command in COMMANDS:
        assert f"\n    {command}" in done.stdout
    assert "pydantic" in done.stderr
    for heavy in ("cupy", "llvmlite", "jinja2", "tree_sitter"):
        assert f" {heavy}\n" not in done.stderr, heavy


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_examples_that_the_command_understands(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    begin = f"python3 -m harness {command} "
    lines = map(str.strip, shown.splitlines())
    examples = [line for line in lines if line.startswith(begin)]
    assert examples
    for example in examples:
        words, _, _ = example.partition(" | ")
        words, _, _ = words.partition(" > ")
        assert parse(shlex.split(words)[3:]).command == command


with Path(__file__).with_name("wrong_usage.csv").open(encoding="utf-8", newline="") as file:
    WRONG_USAGE = [*csv.DictReader(file)]


@pytest.mark.parametrize("row", WRONG_USAGE, ids=lambda row: row["arguments"])
def test_wrong_usage_ends_at_once_with_one_sentence(
    row: dict[str, str], broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"broken": broken, "folder": tmp_path, "blank": "\u200b"}
    names |= {name: tmp_path / f"{name}.cu" for name in ("pipe", "link")}
    os.mkfifo(names["pipe"])
    names["link"].symlink_to(broken)
    code, out, err = called(capsys, *row["arguments"].format(**names).split())
    assert code == 2
    assert row["message"] in err and len(err.strip().splitlines()) == 1
    assert not out


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("HOME", "/proc/nowhere", "set XDG_CACHE_HOME to a folder that you may write to"),
        ("TMPDIR", "{folder}/ü", "has characters outside ASCII"),
    ],
)
def test_unusable_folders_are_named_with_a_cure(
    name: str,
    value: str,
    message: str,
    broken: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "ü").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv(name, value.format(folder=tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    code, _, said = called(capsys, "grade", broken)
    arena = harness("arena", "--data", tmp_path / "arena")
    for each, sentence in ((code, said), (arena.returncode, arena.stderr)):
        assert each == 2
        assert message in sentence and len(sentence.strip().splitlines()) == 1


def test_json_on_standard_output_is_only_json_even_in_ascii(tmp_path: Path) -> None:
    text = tmp_path / "text.cu"
    text.write_text(BROKEN.replace("int x", "int é = 1, 矩, x"), encoding="utf-8")
    key = SigningKey.at(tmp_path / "own.pem").public
    arguments = ("--json", "-", "--key", tmp_path / "own.pem", text)
    done = harness("grade", *arguments, PYTHONIOENCODING="ascii")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    report = Report.model_validate_json(done.stdout)
    assert report.verdict is Verdict.COMPILE_ERROR and "矩" in report.submission.source
    assert report.signature is not None and report.signature.key == key
    assert "text  compile-error" in done.stderr


def test_a_report_is_entered_as_asked_and_written_even_if_that_fails(
    broken: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    store, key, json = (tmp_path / name for name in ("board.sqlite", "own.pem", "report.json"))
    submits = ["grade", "--submit", "--author", "ada", "--store", store, "--key", key, broken]
    assert called(capsys, *submits)[0] == 1
    with FileStore(store, key=key) as opened:
        (entry,) = opened.entries()
    assert (entry.author, entry.verdict, entry.verified) == ("ada", "compile-error", True)

    def full(*_: object) -> str:
        raise StoreError("the disk is full")

    monkeypatch.setattr(FileStore, "enter", full)
    code, _, said = called(capsys, *submits, "--json", json)
    assert code == 2 and "the report was not kept: the disk is full" in said
    assert Report.model_validate_json(json.read_text()).verdict is Verdict.COMPILE_ERROR


def test_options_reach_the_arena(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr("harness.cli.commands.arena.arena.serve", lambda *how: asked.append(how))
    options = "--data {} --host ::1 --port 81 --root /a --https --proxy ::2 --workers 3"
    assert main(["arena", *options.format(tmp_path).split()]) == 0
    ((data_dir, url, settings, workers, _),) = asked
    chosen = Settings(data=tmp_path, host="::1", port=81, root="/a", secure=True, proxy="::2")
    assert (data_dir.folder, url, settings, workers) == (tmp_path, None, chosen, 3)


def test_ctrl_c_is_exit_code_130(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> Report:
        raise KeyboardInterrupt

    monkeypatch.setattr("harness.cli.commands.grade.grade", interrupted)
    code, _, said = called(capsys, "grade", broken)
    assert (code, said) == (130, "interrupted\n")


def test_the_doctor_fails_for_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for works, needed, expected in ((True, True, 0), (False, True, 1), (False, False, 0)):
        parts = [Check("device", works, "so", needed), Check("isolation", True, "so")]
        monkeypatch.setattr("harness.cli.commands.doctor.check_parts", lambda _, it=parts: it)
        assert called(capsys, "doctor")[0] == expected


def test_options_reach_the_grading(
    broken: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[GradingOptions] = []

    def noted(submission: object, session: object, options: GradingOptions, *_: object) -> Report:
        asked.append(options)
        return factory.report()

    monkeypatch.setattr("harness.cli.commands.grade.grade", noted)
    for options in ((), ("--quick",), ("--sizes", "--seed", "7")):
        assert called(capsys, "grade", *options, broken)[0] == 0
    full = GradingOptions()
    assert asked == [full, replace(full, quick=True), replace(full, sizes=True, seed=7)]
    failed = JudgeError(stage=Stage.READ, message="enough")
    monkeypatch.setattr(
        "harness.cli.commands.explain.examine", lambda *how: asked.append(how[2]) or failed
    )
    assert called(capsys, "explain", "--shape", "64x32x48", "--seed", "7", broken)[0] == 2
    assert (asked[-1].counted_shape, asked[-1].seed) == (Shape(64, 32, 48), 7)


LEADERBOARD = [sys.executable, "-m", "harness", "leaderboard", "--reports", "reports"]


def test_a_reader_who_has_seen_enough_sees_no_error() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        LEADERBOARD, cwd=ROOT, stdout=writing, stderr=subprocess.PIPE, check=False
    )
    os.close(writing)
    assert (done.returncode, done.stderr) == (2, b"")


def test_closed_streams_do_not_matter() -> None:
    command = [*LEADERBOARD, "--json", "-"]
    done = subprocess.run(command, cwd=ROOT, preexec_fn=lambda: os.closerange(0, 3), check=False)
    assert done.returncode == 0


def test_another_python_enters_the_projects_environment(broken: Path) -> None:
    python = "/usr/bin/python3"
    if not (ROOT / ".nox" / "environment").exists() or not Path(python).exists():
        pytest.skip("there is no environment to enter, or no other Python")
    only = {"PATH": os.environ["PATH"], "HOME": str(Path.home())}
    done = harness("grade", broken, python=(python,), only=only)
    assert done.returncode == 1 and "broken  compile-error" in done.stdout, done.stderr


def test_without_an_environment_one_sentence_says_how_to_install(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "harness", tmp_path / "harness", ignore=shutil.ignore_patterns("*.pyc"))
    done = harness("grade", python=(sys.executable, "-S"), cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == (
        "matmul-arena is not installed yet. Install it with: "
        "python3 -m pip install nox && python3 -m nox -s doctor\n"
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGTERM])
def test_an_interruption_at_once_leaves_nothing_behind(
    number: signal.Signals, tmp_path: Path
) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = python("-m", "harness", "grade", "solutions/17_split_tail.cu", env=environment)
    time.sleep(0.3)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    # A shell sees the same number, whether the process exits or the signal ends it at last.
    assert process.returncode in (128 + number, -number) and "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_several_files_end_with_a_table_despite_a_missing_one(
    broken: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other" / broken.name
    other.parent.mkdir()
    other.write_text(BROKEN.replace("int x", "long y"))
    code, out, err = called(
        capsys, "grade", broken, "none.cu", other, "--json", tmp_path / "reports"
    )
    assert code == 2
    assert out.count("broken  compile-error") == 2 and "verdict" in out
    assert "none.cu" in err
    sources = {
        path.name: json.loads(path.read_text())["submission"]["source"]
        for path in (tmp_path / "reports").iterdir()
    }
    assert sources == {"broken.json": BROKEN, "broken-2.json": other.read_text()}


def test_a_solution_for_other_gpus_fails_only_if_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = Path(shutil.copy(ROOT / "solutions" / "13_async_copies.cu", tmp_path))
    monkeypatch.setattr("harness.cli.commands.grade.SOLUTIONS", tmp_path)
    wanted = ("grade", "--quick", "--device", "cpu", "--arch", "sm_75", "--sizes")
    for files, expected in (((), 0), ((path,), 2)):
        code, out, notes = called(capsys, *wanted, *files)
        assert code == expected and "unsupported" in out and "sm_75" in out
        assert "--sizes was ignored" in notes


def test_an_error_shows_the_users_line(broken: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = called(capsys, "grade", broken)
    assert "broken.cu:1:" in out and "int x = ;" in out and "^" in out
    assert "\x1b" not in out, "this is no terminal"
    assert not any(line.endswith(" ") for line in out.splitlines())


def test_the_same_seed_draws_the_same_inputs(
    tmp_path: Path, cpu_session: Session, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(kernel("if (!(threadIdx.x | threadIdx.y | blockIdx.x | blockIdx.y)) *C = *A;"))
    _, out, _ = called(capsys, "grade", "--quick", "--seed", "12", "--json", "-", wrong)
    report = Report.model_validate_json(out)
    assert report.quick and report.environment.isolation
    assert isinstance(report.outcome, WrongAnswer) and report.outcome.counterexample.seed == 12
    again = grade(read(wrong), cpu_session, GradingOptions(quick=True, seed=12))
    assert again.outcome.model_dump_json() == report.outcome.model_dump_json()


def test_an_exit_inside_a_library_callback_prints_nothing() -> None:
    """ctypes shows and drops the exception of a callback, as libraries in C do."""
    code = (
        "import ctypes, os, time; from harness.bootstrap import Startup; Startup().over(); "
        "ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), 15))(); time.sleep(60)"
    )
    process = python("-c", code)
    assert (process.communicate()[1], process.returncode) == ("", 143)
