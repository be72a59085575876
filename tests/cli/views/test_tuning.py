"""The tuner's table, best first."""

import io
from datetime import UTC, datetime

from harness.cli.commands.tune import screen
from harness.cli.views.console import SafeConsole
from harness.judge.tune.tune import Tuning, Variant
from harness.protocol.report import Accepted, CompileError, Score, Stage
from tests.judge.stages.fakes import INFO, SUBMISSION, kernel


def scored(T: int, ratio: float) -> Variant:
    low, high, ms = ratio - 0.002, ratio + 0.002, 8 / ratio
    times = {"low": low, "high": high, "kernel_ms": ms, "baseline_ms": 8, "tflops": 50}
    score = Score(ratio=ratio, **times, peak_share=0.7)
    return Variant(setting={"T": T}, outcome=Accepted(score=score), kernel=kernel().facts)


REFUSED = CompileError(stage=Stage.COMPILE, message="line 9: static assertion failed")
VARIANTS = (
    scored(16, 0.5),
    Variant(setting={"T": 32}, outcome=REFUSED),
    scored(64, 0.9),
    scored(128, 0.899),
)


def shown(width: int) -> list[str]:
    tuning = Tuning(
        judge="0.1.0",
        created=datetime(2026, 11, 20, tzinfo=UTC),
        seed=7,
        submission=SUBMISSION,
        device=INFO,
        possible=4,
        planned=4,
        variants=VARIANTS,
    )
    output = io.StringIO()
    SafeConsole(file=output, width=width).print(screen(tuning))
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_the_table_is_sorted_by_score_and_fits() -> None:
    lines = shown(80)
    assert max(map(len, lines)) <= 80
    header = next(i for i, line in enumerate(lines) if "score" in line)
    rows = [line.split() for line in lines[header + 1 : header + 5]]
    assert [row[0] for row in rows] == ["64", "128", "16", "32"]
    assert rows[0] == ["64", "0.900", "0.898–0.902", "8.889", "32", "0", "0", "100%", "accepted"]
    assert rows[3][1] == "compile-error"


def test_the_last_line_names_the_best_and_its_gain() -> None:
    *_, rivals, last = shown(120)
    assert last.startswith("best: T=64  0.900 × cuBLAS (95 %: 0.898 to 0.902)")
    assert last.endswith("1.800 × the file as it stands")
    assert rivals == "1 more within its interval: grade them to tell which"
