"""The tuner's table, best first."""

from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest

from harness.cli.commands.tune import screen
from harness.cli.views.console import SafeConsole
from harness.compiling.compiler import compile_source
from harness.judge.tune.tune import Tuning, Variant
from harness.protocol.compiler import Compile, Compiled
from harness.protocol.report import (
    Accepted,
    CompileError,
    DeviceInfo,
    DeviceKind,
    Score,
    Stage,
    Submission,
)

SOURCE = """\
// solve: tile=16x16
// tune: solve tile={T}x16
constexpr int T = 16;  // tune: 16 32 64 128
__global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N,
                                             int K) {
    C[0] = T;
}
"""


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    answer = compile_source(Compile(source=SOURCE))
    assert isinstance(answer, Compiled)
    return answer


def scored(compiled: Compiled, T: int, ratio: float) -> Variant:
    score = Score(
        ratio=ratio,
        low=ratio - 0.002,
        high=ratio + 0.002,
        kernel_ms=8 / ratio,
        baseline_ms=8,
        tflops=50,
        peak_share=0.7,
    )
    return Variant(setting={"T": T}, outcome=Accepted(score=score), kernel=compiled.kernel.facts)


@pytest.fixture
def tuning(compiled: Compiled) -> Tuning:
    refused = CompileError(stage=Stage.COMPILE, message="line 9: static assertion failed")
    return Tuning(
        judge="0.1.0",
        created=datetime(2026, 11, 20, tzinfo=UTC),
        seed=7,
        submission=Submission(name="t", author=None, sha256="0" * 64, source=SOURCE),
        device=DeviceInfo(kind=DeviceKind.CUDA, name="GPU 9000", arch="sm_90a", driver="13.0"),
        possible=4,
        planned=4,
        variants=(
            scored(compiled, 16, 0.5),
            Variant(setting={"T": 32}, outcome=refused),
            scored(compiled, 64, 0.9),
            scored(compiled, 128, 0.899),
        ),
    )


def shown(tuning: Tuning, width: int = 80) -> list[str]:
    console = SafeConsole(file=io.StringIO(), width=width)
    console.print(screen(tuning))
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_the_table_is_sorted_by_score_and_fits(tuning: Tuning) -> None:
    lines = shown(tuning)
    assert max(map(len, lines)) <= 80
    header = next(i for i, line in enumerate(lines) if "score" in line)
    rows = [line.split() for line in lines[header + 1 : header + 5]]
    assert [row[0] for row in rows] == ["64", "128", "16", "32"]
    assert rows[0][1:4] == ["0.900", "0.898–0.902", "8.889"]
    assert rows[3][1] == "compile-error"


def test_the_last_line_names_the_best_and_its_gain(tuning: Tuning) -> None:
    *_, rivals, last = shown(tuning, 120)
    assert last.startswith("best: T=64  0.900 × cuBLAS (95 %: 0.898 to 0.902)")
    assert last.endswith("1.800 × the file as it stands")
    assert rivals == "1 more within its interval: grade them to tell which"
