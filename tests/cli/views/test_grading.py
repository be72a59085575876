"""The terminal view: one screen, 80 columns, the last line the one that matters."""

import io
import re
from pathlib import Path
from typing import Any

import pytest

from harness.cli.views.advice import advice
from harness.cli.views.console import SafeConsole
from harness.cli.views.grading import screen, summary
from harness.protocol import report as protocol
from problem.cases import Case, Shape
from problem.launcher import LaunchLine
from tests.board import factory
from tests.judge.stages.fakes import kernel, report

ROOT = Path(__file__).resolve().parents[3]
SOURCE = "line one\n" + "x" * 300 + " here\nline [bold]three[/bold]\n"
WRONG = factory.wrong().outcome
FINDING = protocol.Finding(
    tool=protocol.Tool.RACECHECK,
    hazard=protocol.Hazard.RACE,
    message="race on shared memory between line 1 and line 3, with no barrier between them",
    at=protocol.Place(line=1, thread=(1, 2, 0), block=(0, 0, 0)),
    other=protocol.Place(line=3, thread=(2, 2, 0)),
    array=protocol.Array.SHARED,
    occurrences=7,
)
VERIFY, SANITIZE = protocol.Stage.VERIFY, protocol.Stage.SANITIZE
LATE = protocol.TimeLimit(stage=VERIFY, message="slow", seconds=1, at=protocol.Place(line=1))
STALE = protocol.Rule.STALE_RESULT
OUTCOMES: list[tuple[protocol.Outcome, list[str]]] = [
    (
        protocol.CompileError(
            stage=protocol.Stage.COMPILE,
            message="line 2: nonsense",
            diagnostics=(
                protocol.Diagnostic(severity="error", message="nonsense", line=2, column=302),
                protocol.Diagnostic(severity="error", message="no place"),
            ),
        ),
        ["two.cu:2:302: error: nonsense", " here", "^"],
    ),
    (WRONG, ["M=33 N=16 K=33", "seed 12", "nan", "███", "only the last row of blocks"]),
    (
        protocol.MemoryFault(stage=SANITIZE, message="bad", findings=(FINDING,)),
        ["racecheck: race on shared", "(7 times)", "(1, 2, 0), thread (2, 2, 0)", "line [bold]th"],
    ),
    (protocol.Race(stage=SANITIZE, message="", findings=(FINDING,)), ["Write `__syncthreads();`"]),
    (protocol.RuntimeFault(stage=VERIFY, message="trap", at=FINDING.other), ["three"]),
    (LATE, ["line one"]),
    (
        protocol.RuleViolation(stage=protocol.Stage.MEASURE, rule=STALE, message="stale"),
        ["rule-violation  stale"],
    ),
    (protocol.Unsupported(stage=protocol.Stage.COMPILE, message="no clusters"), ["no clusters"]),
    (
        protocol.JudgeError(stage=VERIFY, message="ours", details="Traceback: xyz"),
        ["judge's fault, not the submission's", "Traceback: xyz"],
    ),
]


TWO = protocol.Submission(name="two", author=None, sha256="0" * 64, source=SOURCE)


def shown(outcome: protocol.Outcome, **fields: Any) -> str:
    output, given = io.StringIO(), {"submission": TWO, **fields}
    SafeConsole(file=output, width=80).print(screen(report(outcome, **given)))
    return output.getvalue()


@pytest.mark.parametrize(
    ("source", "said"), [("__device__ int flag;\n", True), ("__shared__ int flag;\n", False)]
)
def test_an_endless_kernel_may_wait_for_a_later_block(source: str, said: bool) -> None:
    given = report(LATE, submission=TWO.model_copy(update={"source": source}))
    assert ("wait only for blocks that run at the same time" in (advice(given) or "")) == said


def test_a_hang_in_a_tiny_case_is_an_endless_loop() -> None:
    late = LATE.model_copy(update={"shape": Shape(16, 16, 16)})
    assert "the loop has no end" in (advice(report(late, submission=TWO)) or "")
    polls = TWO.model_copy(update={"source": "while (!test_wait(parity));"})
    found = advice(report(late, submission=polls))
    assert found is not None and found.startswith("A phase of an mbarrier ends")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("__shared__ int ready;\nwhile (ready == 0) {}", "line 2 waits for `ready`"),
        ("void wait(int* flag) { while (flag[1] < 2) __nanosleep(9); }", "waits for `flag`"),
        ("__shared__ volatile int ready; while (ready == 0);", None),
        ("__shared__ int ready; while (atomicAdd(&ready, 0) == 0);", None),
        ("const float* p; do { s += *p++; } while (p != end);", None),
    ],
)
def test_a_plain_variable_is_not_polled(source: str, said: str | None) -> None:
    given = report(LATE, submission=TWO.model_copy(update={"source": source}))
    found = advice(given) or ""
    assert ("declare it `volatile`, or read it by an atomic" in found) == (said is not None)
    assert (said or "") in found


def test_a_race_of_a_plain_variable_that_is_polled_is_explained() -> None:
    source = "__shared__ int ready;\nif (last)\n  ready = 1;\nwhile (ready == 0) {}"
    message = "line 1 reads what line 3 writes, with no barrier between them: byte 0 of ready (4"
    found = FINDING.model_copy(update={"message": message})
    race = protocol.Race(stage=SANITIZE, message="", findings=(found,))
    given = report(race, submission=TWO.model_copy(update={"source": source}))
    assert "The loop in line 4 waits for `ready`" in (advice(given) or "")


@pytest.mark.parametrize(
    ("shape", "tile", "is_an_index"),
    [
        (Shape(512, 384, 256), (16, 16), True),
        (Shape(512, 384, 256), (128, 256), True),
        (Shape(16, 16, 16), (16, 16), True),
        (Shape(16, 16, 16), (128, 128), False),
        (Shape(512, 384, 256), (128, 512), False),
        (Shape(271, 384, 256), (16, 16), False),
    ],
)
def test_bounds_are_not_blamed_where_there_is_no_edge(
    shape: Shape, tile: tuple[int, int], is_an_index: bool
) -> None:
    found = FINDING.model_copy(
        update={"hazard": protocol.Hazard.OUT_OF_BOUNDS, "array": "C", "shape": shape}
    )
    outcome = protocol.MemoryFault(stage=VERIFY, message="", findings=(found,))
    facts = kernel(LaunchLine(tile_rows=tile[0], tile_columns=tile[1])).facts
    said = advice(report(outcome, submission=TWO, kernel=facts)) or ""
    assert ("an index is wrong" in said) == is_an_index
    size = "16" if tile == (16, 16) else "the tile's"
    assert (f"Not every size is a multiple of {size}" in said) != is_an_index


def test_half_a_tile_may_look_like_swapped_rows_and_columns() -> None:
    pattern = (
        "65536 of 131072 elements of C were never written, as if rows and columns were swapped"
    )
    shown = {"pattern": pattern, "wrong_blocks": 256, "blocks": 512}
    found = WRONG.counterexample.model_copy(update=shown)
    facts = kernel(LaunchLine(tile_rows=128, tile_columns=128)).facts
    half = WRONG.model_copy(update={"counterexample": found})
    said = advice(report(half, submission=TWO, kernel=facts)) or ""
    assert "The launch line declares a tile of 128×128." in said


@pytest.mark.parametrize(
    ("array", "column", "crosses"),
    [("A", 62, True), ("A", 16, False), ("B", 16, True), ("B", 14, False), ("C", 16, True)],
)
def test_a_vector_ends_in_its_row(array: str, column: int, crosses: bool) -> None:
    place = {"array": array, "column": column, "size": 16, "shape": Shape(16, 64, 18)}
    found = FINDING.model_copy(update={"hazard": protocol.Hazard.OUT_OF_BOUNDS, **place})
    outcome = protocol.MemoryFault(stage=VERIFY, message="", findings=(found,))
    said = advice(report(outcome, submission=TWO)) or ""
    assert ("extends beyond the end of its row" in said) == crosses


KERNEL = (
    "matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K)"
)
HONEST = [
    # a helper has its own names for the sizes
    f"void helper(int M, int N, int K) {{ A[r * K + k]; }} void {KERNEL} {{ helper(M, K, N); }}",
    # A has rows of both lengths, as after a transposition
    f"void {KERNEL} {{ float x = A[r * K + k] + A[r * N + k]; }}",
    # a constructor sets the member
    "struct Sum {\n    float s;\n    void add(float x) { s += x; }\n    Sum() : s(0) {}\n};",
    # the groups number the threads of both dimensions
    "int t = cg::this_thread_block().thread_rank(), x = threadIdx.x;",
]


@pytest.mark.parametrize("source", HONEST)
def test_what_is_no_mistake_is_not_blamed(source: str) -> None:
    given = report(WRONG, submission=TWO.model_copy(update={"source": source}))
    assert advice(given) is None


def test_shuffles_are_not_blamed_for_an_overflow() -> None:
    shuffles = TWO.model_copy(update={"source": "sum += __shfl_down_sync(lanes, sum, 1);"})
    for cause, is_blamed in (("by an overflow", False), ("by a division by zero", True)):
        pattern = f"C is not finite somewhere: perhaps {cause}"
        found = WRONG.counterexample.model_copy(update={"pattern": pattern})
        wrong = WRONG.model_copy(update={"counterexample": found})
        assert (advice(report(wrong, submission=shuffles)) is not None) == is_blamed


def test_inputs_of_low_precision_have_a_cure() -> None:
    pattern = "errors up to 3.0e-04 look like inputs of low precision (TF32, FP16, BF16)"
    found = WRONG.counterexample.model_copy(update={"pattern": pattern})
    wrong = WRONG.model_copy(update={"counterexample": found})
    file = re.search(r"`(solutions/\S+)`", advice(report(wrong, submission=TWO)) or "")
    assert file is not None and (ROOT / file[1]).is_file()


@pytest.mark.parametrize(("outcome", "words"), OUTCOMES, ids=lambda value: str(value)[:30])
def test_every_verdict_has_its_screen(outcome: protocol.Outcome, words: list[str]) -> None:
    text = shown(outcome)
    for word in words:
        assert word in text
    lines = text.rstrip().splitlines()
    assert max(map(len, lines)) <= 80 and len(lines) <= 40
    assert f"two  {outcome.verdict.value}" in text


@pytest.mark.parametrize(
    ("access", "array", "column"), [("write", "C", 1), ("read", "B", 15), ("read", "C", 8)]
)
def test_a_caret_is_under_the_access(access: str, array: str, column: int) -> None:
    bad = FINDING.model_copy(update={"access": access, "array": array, "other": None})
    text = "C[i] = C[j] + B[k];"
    fault = protocol.MemoryFault(stage=SANITIZE, message="", findings=(bad,))
    found = shown(fault, submission=TWO.model_copy(update={"source": text}))
    assert f"     1 │ {text}\n       │ {' ' * (column - 1)}^\n" in found


def test_output_of_the_kernel_is_marked_as_such() -> None:
    text = shown(OUTCOMES[0][0], printed="[red]accepted[/red] 9.99 × cuBLAS")
    assert "The kernel printed:\n[red]accepted[/red] 9.99 × cuBLAS" in text


@pytest.mark.parametrize(
    ("watched", "bounded", "said"),
    [
        (2, 0, "2 of 131 072 blocks (0.0015 %)"),
        (2, 131072, "2 of 131 072 blocks (0.0015 %), bounds checked in all"),
        (0, 131072, "no block ended in time, bounds checked in all"),
        (131000, 0, "131 000 of 131 072 blocks (99 %)"),
        (131072, 131072, "all 131 072 blocks, bounds checked in all"),
    ],
)
def test_the_screen_says_how_many_blocks_ran(watched: int, bounded: int, said: str) -> None:
    case = protocol.CaseResult(
        case=Case(Shape(8, 8, 8)), error=0, seconds=1, sampled_blocks=64, blocks=131072
    )
    ranked = protocol.WatchedBlocks(blocks=131072, watched=watched, bounded=bounded)
    text = shown(
        OUTCOMES[0][0],
        verification=protocol.Verification(cases=(case,), worst_error=0),
        sanitizing=(protocol.Sanitizing(program="it", shapes=(), tools=(), ranked=ranked),),
    )
    lines = [each.strip().replace("\N{NO-BREAK SPACE}", " ") for each in text.splitlines()]
    assert "ranked size: 64 of 131 072 blocks (0.049 %)" in lines
    assert f"ranked size: {said}" in lines


def test_the_table_of_many_gradings() -> None:
    output = io.StringIO()
    SafeConsole(file=output, width=80).print(summary([report(o) for o, _ in OUTCOMES]))
    assert all(o.verdict.value in output.getvalue() for o, _ in OUTCOMES)
