"""The tuner from end to end: on the CPU device everywhere, with times where there is a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.cli.main import main
from harness.cli.views.tuning import kept
from harness.judge.progress import Silent
from harness.judge.stages import rounds
from harness.judge.submission import read
from harness.judge.tune.tunable import Setting, find_tunables
from harness.judge.tune.tune import Tuning, TuningOptions, Variant, tune
from harness.judge.workers.session import open_session
from harness.judge.workers.worker import Worker
from harness.protocol.device import Load
from harness.protocol.report import (
    CompileError,
    DeviceInfo,
    DeviceKind,
    Stage,
    Submission,
    Verdict,
    WrongAnswer,
)
from harness.protocol.request import Answer_co, Done, Fault, Request
from harness.protocol.timing import (
    Attach,
    Checked,
    CheckLaunch,
    Detach,
    DrawInputs,
    LayOut,
    SharedMatrices,
    TimeLaunch,
    TimingWorkers,
)
from problem.cases import Extent
from problem.problem import Problem
from tests.grading import with_parts
from tests.judge.stages.fakes import launch_time
from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[3]

KERNEL = """\
// ROWS rows of C a thread; with AHEAD every sum begins at the second product.
// solve: tile=16x16
// tune: solve tile={16 * ROWS}x16
constexpr int ROWS = 1;   // tune: 1 2 3
constexpr int AHEAD = 0;  // tune: 0 1
static_assert(ROWS != 3, "three rows are too many");

__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    int column = blockIdx.x * 16 + threadIdx.x;
    for (int i = 0; i < ROWS; ++i) {
        int row = (blockIdx.y * ROWS + i) * 16 + threadIdx.y;
        if (row >= M || column >= K) continue;
        float sum = 0.0f;
        for (int n = AHEAD; n < N; ++n) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
        C[(size_t)row * K + column] = sum;
    }
}
"""


class Listener(Silent):
    """Remembers what it is told."""

    def __init__(self) -> None:
        self.planned = 0
        self.heard: list[Variant] = []

    def plan(self, planned: int, possible: int, seed: int) -> None:
        self.planned = planned

    def trying(self, number: int, setting: Setting) -> None: ...

    def tried(self, number: int, variant: Variant) -> None:
        self.heard.append(variant)


@dataclass
class WatchedCompiler:
    """Notes which process compiled what; kills it before the compilations named in `fatal`."""

    worker: Worker
    fatal: tuple[int, ...] = ()
    processes: list[int | None] = field(default_factory=list)

    def ask(self, request: Request[Answer_co]) -> Answer_co | Fault:
        if len(self.processes) in self.fatal:
            assert self.worker.process_id is not None
            os.kill(self.worker.process_id, signal.SIGXCPU)
        answer = self.worker.ask(request)
        self.processes.append(self.worker.process_id)
        return answer


@pytest.fixture
def kernel(tmp_path: Path) -> Path:
    path = tmp_path / "rows.cu"
    path.write_text(KERNEL)
    return path


def on_cpu(
    path: Path, *, limit: int = 100, fatal: tuple[int, ...] = ()
) -> tuple[Tuning, Listener, WatchedCompiler]:
    listener = Listener()
    submission = read(path)
    assert isinstance(submission, Submission)
    with open_session("cpu") as session:
        assert isinstance(session.compiler, Worker)
        compiler = WatchedCompiler(session.compiler, fatal)
        watched = with_parts(session, compiler=compiler)
        found = tune(
            submission, watched, TuningOptions(limit=limit, seed=5, seconds=PATIENCE), listener
        )
    return found, listener, compiler


def test_each_variant_gets_the_judges_verdict_in_the_same_workers(
    kernel: Path,
) -> None:
    found, listener, compiler = on_cpu(kernel)
    verdicts = {
        (variant.setting["ROWS"], variant.setting["AHEAD"]): variant.outcome.verdict
        for variant in found.variants
    }
    assert verdicts == {
        (1, 0): Verdict.ACCEPTED,
        (1, 1): Verdict.WRONG_ANSWER,
        (2, 0): Verdict.ACCEPTED,
        (2, 1): Verdict.WRONG_ANSWER,
        (3, 0): Verdict.COMPILE_ERROR,
        (3, 1): Verdict.COMPILE_ERROR,
    }
    assert found.best is None and found.best_source is None  # nothing was timed
    assert tuple(listener.heard) == found.variants and listener.planned == found.possible == 6
    two_rows = next(each for each in found.variants if each.setting == {"ROWS": 2, "AHEAD": 0})
    assert two_rows.kernel is not None and two_rows.kernel.launch.tile_rows == 32
    assert two_rows.kernel.resources.registers > 0
    broken = found.variants[-1].outcome
    assert isinstance(broken, CompileError) and "three rows are too many" in broken.message
    wrong = found.variants[1].outcome
    assert isinstance(wrong, WrongAnswer) and wrong.counterexample.seed == 5
    assert len(set(compiler.processes)) == 1
    assert compiler.worker.process_id is None  # closed at the end
    assert Tuning.model_validate_json(found.model_dump_json()) == found


def test_a_worn_out_worker_costs_no_variant(
    kernel: Path,
) -> None:
    found, _, compiler = on_cpu(kernel, limit=4, fatal=(2,))
    assert not {each.outcome.verdict for each in found.variants} & {
        Verdict.TIME_LIMIT,
        Verdict.JUDGE_ERROR,
    }
    first, _, died, *_ = compiler.processes
    assert died is None and compiler.processes[-1] not in (first, None)


def test_the_command_shows_a_table_and_writes_json(
    kernel: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "table.json"
    kernel.write_text(KERNEL.replace("// tune: 1 2 3", ""))
    kernel.write_text(kernel.read_text().replace("// tune: solve tile={16 * ROWS}x16\n", ""))
    code = main(["tune", "--device", "cpu", "--seed", "5", "--json", str(table), str(kernel)])
    shown = capsys.readouterr().out
    assert code == 0
    assert "2 variants" in shown and "1/2  AHEAD=0  accepted" in shown
    lines = [line.split() for line in shown.splitlines()]
    assert ["AHEAD", "regs", "spilled", "shared", "occ.", "verdict"] in lines
    assert any(line[:1] == ["1"] and "wrong-answer" in line for line in lines)
    found = Tuning.model_validate_json(table.read_text())
    assert [each.outcome.verdict for each in found.variants] == ["accepted", "wrong-answer"]


def test_no_accepted_variant_is_exit_code_1(kernel: Path) -> None:
    kernel.write_text(KERNEL.replace("AHEAD = 0;", "AHEAD = 1;"))
    assert main(["tune", "--device", "cpu", "--limit", "1", str(kernel)]) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--device", "cpu", "none.cu"], "there is no file none.cu"),
        (["--device", "cpu", "solutions/01_naive.cu"], "01_naive.cu: no constant may vary"),
        (["--device", "cpu", "--out", "best.cu", "FILE"], "which only a GPU can tell"),
        (["--out", "no/such/best.cu", "FILE"], "there is no folder no/such"),
        (["--json", "tests", "FILE"], "tests is a folder"),
    ],
)
def test_wrong_usage_is_exit_code_2_and_one_sentence(
    arguments: list[str],
    sentence: str,
    kernel: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ROOT)
    assert main(["tune", *(str(kernel) if word == "FILE" else word for word in arguments)]) == 2
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


def test_without_a_gpu_it_says_so(
    kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.devices.available.why_no_cuda", lambda: "there is no NVIDIA GPU")
    assert main(["tune", str(kernel)]) == 2
    said = capsys.readouterr().err
    assert "there is no NVIDIA GPU" in said and "--device cpu" in said and said.count("\n") == 1


def test_an_interruption_ends_with_the_table_so_far(kernel: Path, tmp_path: Path) -> None:
    """In the middle: of the variants after the first, most end by nothing but their limit."""
    table = tmp_path / "table.json"
    endless = "    while (ROWS + AHEAD > 1 && *(const volatile float*)A < 1e30f) continue;\n"
    kernel.write_text(KERNEL.replace("    int column", endless + "    int column"))
    started = subprocess.Popen(
        [sys.executable, "-m", "harness", "tune", "--device", "cpu", "--json", table, kernel],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert started.stdout is not None
    for line in started.stdout:
        if line.startswith("1/6"):
            started.send_signal(signal.SIGINT)
            break
    shown, said = started.communicate(timeout=PATIENCE)
    assert started.returncode == 130 and "Traceback" not in said
    assert "interrupted after" in shown and "verdict" in shown
    found = Tuning.model_validate_json(table.read_text())
    assert 1 <= len(found.variants) < found.planned == 6


@dataclass
class StandIn:
    """The CPU device with the clock of a GPU: a kernel takes as long as its tile says."""

    worker: Worker
    ms_of_tile: dict[int, float]
    ms: float = 8.0

    def ask(self, request: Any) -> Any:
        match request:
            case Attach() | Detach():
                return Done()
            case TimeLaunch():
                return launch_time(self.ms, self.ms)
            case Load():
                self.ms = self.ms_of_tile[request.kernel.launch.tile_rows]
        return self.worker.ask(request)


class StandInChecker:
    """Finds everything right."""

    def ask(self, request: Any) -> Any:
        match request:
            case LayOut():
                return SharedMatrices(arguments=request.arguments, handles=(), offsets=())
            case DrawInputs():
                return Done()
            case CheckLaunch():
                return Checked(error=0.1)
        raise AssertionError(request)


def tune_on_stand_in(
    path: Path, monkeypatch: pytest.MonkeyPatch, ms_of_tile: dict[int, float]
) -> Tuning:
    monkeypatch.setattr(rounds, "MIN_WARM_UP_SECONDS", 0)
    monkeypatch.setattr(rounds, "MAX_SECONDS", PATIENCE)
    few = Extent(4, 1, 1, 1 << 22, 1 << 24)
    monkeypatch.setattr(Problem, "extent", property(lambda _: lambda *__: few))
    info = DeviceInfo(kind=DeviceKind.CUDA, name="stand-in", arch="sm_90a", fp32_peak_tflops=67.0)
    submission = read(path)
    assert isinstance(submission, Submission)
    with open_session("cpu") as session:
        assert isinstance(session.device, Worker)
        device = StandIn(session.device, ms_of_tile)
        baseline = StandIn(session.device, {})
        timing = TimingWorkers(device, baseline, StandInChecker())
        timed = with_parts(session, info=info, device=device, timing=timing)
        return tune(submission, timed, TuningOptions(seconds=PATIENCE), Listener())


def test_the_fastest_right_variant_is_kept(kernel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = tune_on_stand_in(kernel, monkeypatch, {16: 10.0, 32: 6.4})
    best = kept(found)
    assert best is not None and find_tunables(best).written == {"ROWS": 2, "AHEAD": 0}
    assert "// solve: tile=32x16\n" in best
    assert found.best is not None and found.best.score is not None
    assert found.best.score.ratio == pytest.approx(1.25)
    assert found.as_it_stands is not None and found.as_it_stands.score is not None
    assert found.as_it_stands.score.ratio == pytest.approx(0.8)


@pytest.mark.gpu
def test_the_best_is_kept_with_its_table_and_is_accepted(kernel: Path, tmp_path: Path) -> None:
    best, table = tmp_path / "best.cu", tmp_path / "table.json"
    assert main(["tune", "--out", str(best), "--json", str(table), str(kernel)]) == 0
    found = Tuning.model_validate_json(table.read_text())
    scored = [each for each in found.variants if each.score]
    assert {each.setting["ROWS"] for each in scored} == {1, 2}
    assert all(each.setting["AHEAD"] == 0 for each in scored)
    assert found.best is not None and found.best_source is not None
    kept = best.read_text()
    assert kept.startswith(found.best_source) and "// Tuned by matmul-arena" in kept
    assert find_tunables(kept).written == found.best.setting
    assert main(["grade", "--quick", str(best)]) == 0


def test_stages_are_those_of_the_judge(kernel: Path) -> None:
    """A variant that does not compile is never run."""
    begun: list[Stage] = []

    class Stages(Listener):
        def begin(self, stage: Stage, total: int | None) -> None:
            begun.append(stage)

    kernel.write_text(KERNEL.replace("ROWS = 1;", "ROWS = 3;").replace("16x16", "48x16"))
    submission = read(kernel)
    assert isinstance(submission, Submission)
    with open_session("cpu") as session:
        tune(submission, session, TuningOptions(limit=1), Stages())
    assert begun == [Stage.COMPILE]
