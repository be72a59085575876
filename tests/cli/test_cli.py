"""The command line, as a user and as a program meets it."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main, parser
from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from harness.protocol.report import Report, Verdict, WrongAnswer

ROOT = Path(__file__).resolve().parent.parent.parent
SIGNATURE = "(const float* A, const float* B, float* C, int M, int N, int K)"
BROKEN = f"__global__ void matrix_multiplication_kernel{SIGNATURE} {{ int x = ; }}\n"


def harness(
    *arguments: str | Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "harness", *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "COLUMNS": "80", **(environment or {})},
        check=False,
    )


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cli") / "broken.cu"
    path.write_text(BROKEN)
    return path


COMMANDS = sorted(path.stem for path in (ROOT / "harness" / "commands").glob("[!_]*.py"))


def test_help_names_every_command_and_needs_no_heavy_library() -> None:
    done = harness("--help", environment={"PYTHONPROFILEIMPORTTIME": "1"})
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
    begin = f"  python3 -m harness {command} "
    examples = [line for line in shown.splitlines() if line.startswith(begin)]
    assert examples
    for example in examples:
        words, _, _ = re.sub(r" {3,}.*", "", example.strip()).partition(" | ")
        words, _, _ = words.partition(" > ")
        assert parser().parse_args(shlex.split(words)[3:]).command == command


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "required: COMMAND"),
        (("grade", "--device", "tpu", "x.cu"), "invalid choice: 'tpu'"),
        (("grade", "--seed", "-1", "x.cu"), "a seed is a whole number"),
        (("grade", "none.cu"), "there is no file none.cu"),
        (("grade", "solutions"), "is a directory"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_sentence(
    arguments: tuple[str, ...], message: str
) -> None:
    done = harness(*arguments)
    assert done.returncode == 2
    assert message in done.stderr and "Traceback" not in done.stderr


def test_a_quick_grading_of_a_solution_is_accepted(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    done = harness("grade", "--quick", "--json", path, "solutions/02_shared_tile.cu")
    assert done.returncode == 0, done.stderr + done.stdout
    last = done.stdout.rstrip().splitlines()
    assert any("02_shared_tile  accepted" in line for line in last)
    assert max(map(len, last)) <= 80
    report = Report.model_validate_json(path.read_text())
    assert report.verdict is Verdict.ACCEPTED and report.quick
    assert report.environment.isolation


def test_json_on_standard_output_is_nothing_but_json(broken: Path) -> None:
    done = harness("grade", "--json", "-", broken)
    assert done.returncode == 1
    report = Report.model_validate_json(done.stdout)
    assert report.verdict is Verdict.COMPILE_ERROR
    assert "broken  compile-error" in done.stderr


def test_an_error_shows_the_users_line(broken: Path) -> None:
    done = harness("grade", broken)
    assert "broken.cu:1:" in done.stdout and "int x = ;" in done.stdout and "^" in done.stdout
    assert "\x1b" not in done.stdout, "this is no terminal"


def test_several_files_end_with_a_table_and_a_missing_one_stops_nothing(broken: Path) -> None:
    done = harness("grade", broken, "none.cu", broken)
    assert done.returncode == 2
    assert done.stdout.count("broken  compile-error") == 2 and "verdict" in done.stdout
    assert "none.cu" in done.stderr


def test_two_files_of_one_name_have_a_report_each(broken: Path, tmp_path: Path) -> None:
    other = tmp_path / "other" / broken.name
    other.parent.mkdir()
    other.write_text(BROKEN.replace("int x", "long y"))
    done = harness("grade", broken, other, "--json", tmp_path / "reports")
    assert done.returncode == 1
    sources = {
        path.name: json.loads(path.read_text())["submission"]["source"]
        for path in (tmp_path / "reports").iterdir()
    }
    assert sources == {"broken.json": BROKEN, "broken-2.json": other.read_text()}


def test_colour_where_it_is_wanted_and_none_where_it_is_not(broken: Path) -> None:
    forced = harness("grade", broken, environment={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" in forced
    bare = harness("grade", broken, environment={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b[31" not in bare and "\x1b[1;31" not in bare


def test_a_report_that_cannot_be_written_is_said_and_the_verdict_shown(broken: Path) -> None:
    done = harness("grade", "--json", "/nonexistent/folder/report.json", broken)
    assert done.returncode == 2
    assert "compile-error" in done.stdout and "was not kept" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_same_seed_draws_the_same_inputs(tmp_path: Path, cpu_session: Session) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(f"__global__ void matrix_multiplication_kernel{SIGNATURE} {{ C[0] = A[0]; }}")
    report = Report.model_validate_json(
        harness("grade", "--seed", "12", "--json", "-", wrong).stdout
    )
    assert isinstance(report.outcome, WrongAnswer) and report.outcome.counterexample.seed == 12
    again = grade(read(wrong), cpu_session, GradingOptions(seed=12))
    assert again.outcome.model_dump_json() == report.outcome.model_dump_json()
