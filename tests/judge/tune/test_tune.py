"""The tuner from end to end: on the CPU device everywhere, with times where there is a GPU."""

import signal
from pathlib import Path

import pytest

from harness.cli.main import main
from harness.judge.tune.tunable import find_tunables
from harness.judge.tune.tune import Tuning
from harness.protocol.report import CompileError, Verdict, WrongAnswer
from tests.forked import python
from tests.waiting import PATIENCE

pytestmark = pytest.mark.usefixtures("shared_workers")

KERNEL = Path(__file__).with_name("rows.cu").read_text(encoding="utf-8")


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "rows.cu"
    path.write_text(KERNEL)
    return path


def test_the_command_shows_and_writes_the_verdict_of_each_variant(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.json"
    code = main(["tune", "--device", "cpu", "--seed", "5", "--json", str(table), str(kernel)])
    shown = capsys.readouterr().out
    assert code == 0 and shown.startswith("6 variants\n")
    assert "1/6  ROWS=1 AHEAD=0  accepted" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["ROWS", "AHEAD", "regs", "spilled", "shared", "occ.", "verdict"] in lines
    assert any(line[:2] == ["1", "1"] and "wrong-answer" in line for line in lines)
    found = Tuning.model_validate_json(table.read_text())
    verdicts = {tuple(each.setting.values()): each.outcome.verdict for each in found.variants}
    assert verdicts == {
        (1, 0): Verdict.ACCEPTED,
        (1, 1): Verdict.WRONG_ANSWER,
        (2, 0): Verdict.ACCEPTED,
        (2, 1): Verdict.WRONG_ANSWER,
        (3, 0): Verdict.COMPILE_ERROR,
        (3, 1): Verdict.COMPILE_ERROR,
    }
    assert found.best is None and found.best_source is None  # nothing was timed
    assert found.planned == found.possible == 6
    two_rows = next(each for each in found.variants if each.setting == {"ROWS": 2, "AHEAD": 0})
    assert two_rows.kernel is not None and two_rows.kernel.launch.tile_rows == 32
    broken = found.variants[-1].outcome
    assert isinstance(broken, CompileError) and "three rows are too many" in broken.message
    wrong = found.variants[1].outcome
    assert isinstance(wrong, WrongAnswer) and wrong.counterexample.seed == 5


def test_no_accepted_variant_is_exit_code_1(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("AHEAD = 0;", "AHEAD = 1;"))
    assert main(["tune", "--device", "cpu", "--limit", "1", str(kernel)]) == 1


def test_an_interruption_ends_with_the_table_so_far(kernel: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.json"
    endless = "    while (*(const volatile float*)A < 1e30f) continue;\n"
    text = KERNEL.replace("    int column", endless + "    int column")
    kernel.write_text(text.replace("ROWS != 3", "ROWS != 1"))
    command = "-m", "harness", "tune", "--device", "cpu", "--json", table, kernel
    started = python("-u", *command)
    for line in started.stdout:
        if line.startswith("1/6"):
            started.send_signal(signal.SIGINT)
            break
    shown, said = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130 and "Traceback" not in said
    assert "interrupted after" in shown and "verdict" in shown
    found = Tuning.model_validate_json(table.read_text())
    assert 1 <= len(found.variants) < found.planned == 6


@pytest.mark.gpu
def test_the_best_is_kept_and_is_accepted(kernel: Path, tmp_path: Path) -> None:
    best, table = tmp_path / "best.cu", tmp_path / "table.json"
    assert main(["tune", "--out", str(best), "--json", str(table), str(kernel)]) == 0
    found = Tuning.model_validate_json(table.read_text())
    scored = [each for each in found.variants if each.score]
    assert {each.setting["ROWS"] for each in scored} == {1, 2}
    assert all(each.setting["AHEAD"] == 0 for each in scored)
    assert best.read_text() == found.best_source
    assert find_tunables(found.best_source).written == found.best.setting
    assert main(["grade", "--quick", str(best)]) == 0
