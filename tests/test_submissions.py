"""Every file of tests/submissions gets the verdict of its folder, for the right reason.

A file says what to expect in a comment line, `// expect: key=value ...`:

    message         Words of the outcome's message. An accepted file has none.
    cpu             Words of the message on the CPU device, which knows more than a GPU.
    stage, rule     The stage that refused the file, and the rule that it broke.
    finding         Hazards, one of which must be the first finding's. The finding may be missing
                    only if a GPU stopped the kernel and gave no location.
    line            The line of the first compiler error or finding.
    warning         Words of a warning.
    absent          Words that may occur in the report only in the source or printed output.
    device          The only device that can show the mistake: cpu or cuda.
    seconds         The time limit of one launch, if the kernel must reach it.
    compile_seconds The time limit of the compiler.
    quick           yes: a quick grading is enough on both devices.
                    cpu: it is enough on the CPU device, which then sanitizes as thoroughly.
                    few: on the CPU device, the ranked size after few cases is enough.
                    small: the same at a smaller size, which the file names instead there.
    slow            yes: the CPU device takes 2 to 11 seconds, in place of one. Such files are
                    graded by nox -s architectures and .ci/run.
"""

import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from math import inf
from pathlib import Path
from unittest.mock import patch

import pytest

from harness.judge.grade import GradingOptions, grade
from harness.judge.stages import measure, rounds
from harness.judge.submission import read
from harness.judge.workers.session import Choice, Session
from harness.protocol import report as protocol
from harness.protocol.report import Report
from problem.cases import QUICK_CASES, Case, Extent, Shape
from problem.problem import MATRIX_MULTIPLICATION
from problem.threads import available_cores
from tests.grading import grade_file, graded_on_gpu, wanted
from tests.waiting import PATIENCE

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "submissions"
KEYS = {
    *("message", "cpu", "stage", "rule", "finding", "line", "warning", "absent", "device"),
    *("seconds", "compile_seconds", "quick", "slow"),
}


def expectations(path: Path) -> dict[str, str]:
    lines = [
        line.removeprefix("// expect:")
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("// expect:")
    ]
    assert len(lines) == 1, f"{path.name} needs one line `// expect:`"
    words = dict(word.split("=", 1) for word in shlex.split(lines[0]))
    assert set(words) <= KEYS and "message" in words, f"{path.name}: {words}"
    return words


def cheats_when_timed(path: Path) -> bool:
    """Return whether the verdict comes from timed launches, which other gradings would disturb."""
    return path.parent.name == "rule-violation" and expectations(path).get("stage") == "measure"


FILES = sorted(FOLDER.glob("*/*.cu"), key=lambda path: (cheats_when_timed(path), path))
"""The files. Those that need the GPU alone come last, so that an interrupted run has the others."""


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def files_for(device: Choice) -> list[object]:
    return [
        pytest.param(
            path,
            id=name_of(path),
            marks=[pytest.mark.architectures] if device == "cpu" and "slow" in words else [],
        )
        for path in FILES
        if (words := expectations(path)).get("device", device) == device
    ]


def options(path: Path, device: Choice) -> GradingOptions:
    expected = expectations(path)
    chosen = GradingOptions(quick=expected.get("quick") in ("yes", device), seconds=PATIENCE)
    limits = {
        key: float(expected[key]) for key in ("seconds", "compile_seconds") if key in expected
    }
    return replace(chosen, **limits)  # type: ignore[arg-type]  # both are floats


SMALL_CASES = tuple(case for case in QUICK_CASES if case.shape.flop < 1 << 23)
FEW_CASES = replace(
    MATRIX_MULTIPLICATION,
    known=SMALL_CASES,
    quick_known=SMALL_CASES,
    extent=lambda *_: Extent(1, 0, 0, 3, 1 << 20, 1 << 20, 256),
)
"""A problem of few small cases, for kernels whose products are right."""

SMALL = Case(Shape(1024, 768, 512))


def shrunk(text: str) -> str:
    """Return the text with the sizes of the small ranked size."""
    for large, small in (("8192", "1024"), ("6144", "768"), ("4096", "512")):
        text = text.replace(large, small)
    return text


SMALL_RANKED = replace(MATRIX_MULTIPLICATION, ranked=SMALL)
"""The problem with a smaller ranked size, for kernels that do nothing special at the ranked one."""


def check(path: Path, report: Report, expected: dict[str, str]) -> None:
    outcome = report.outcome
    message = getattr(outcome, "message", "")
    assert outcome.verdict == path.parent.name, message
    assert expected["message"] in message
    on_gpu = report.device is not None and report.device.kind is protocol.DeviceKind.CUDA
    if report.device is not None and not on_gpu:
        assert expected.get("cpu", "") in message
    if "stage" in expected:
        assert getattr(outcome, "stage", None) == expected["stage"]
    if "rule" in expected:
        assert isinstance(outcome, protocol.RuleViolation) and outcome.rule == expected["rule"]
    if "finding" in expected:
        assert isinstance(outcome, protocol.MemoryFault | protocol.Race), outcome
        if outcome.findings or not on_gpu:
            assert outcome.findings[0].hazard in expected["finding"].split(",")
    if "line" in expected:
        assert first_line(outcome) == int(expected["line"])
    if "warning" in expected:
        assert any(expected["warning"] in found.message for found in report.diagnostics)
    if "absent" in expected:
        said = report.model_dump_json(exclude={"submission": {"source"}, "printed": True})
        assert expected["absent"] not in said


def first_line(outcome: protocol.Outcome) -> int | None:
    if isinstance(outcome, protocol.MemoryFault | protocol.Race):
        return outcome.findings[0].at.line
    diagnostics = getattr(outcome, "diagnostics", ())
    return diagnostics[0].line if diagnostics else None


MAX_TOLD = 50_000
"""The number of characters of a report that are shown if it is unexpected."""

FEW = rounds.Extent(rounds=2, seconds=1.0)

SIDE_BY_SIDE = (
    (measure, "FULL", replace(FEW, thorough=True)),
    (measure, "QUICK", FEW),
    (rounds, "MIN_RATIOS", FEW.rounds),
    (rounds, "MIN_WARM_UP_SECONDS", 0.1),
    (rounds, "STEADY_READINGS", 2),
)
"""Settings for many gradings at once on one GPU, of which only the verdicts count: no score becomes
steady there."""


@pytest.fixture(scope="module")
def on_gpu(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Report]]:
    """Give a function that returns the report of a file as soon as it is graded."""
    paths = {path: options(path, "cuda") for path in wanted(request, "test_on_a_gpu")}
    alone = {path: how for path, how in paths.items() if cheats_when_timed(path)}
    together = {path: how for path, how in paths.items() if path not in alone}
    with ExitStack() as stack, ExitStack() as side_by_side:
        # Launches of one process delay the host's clock of another.
        stack.enter_context(patch.object(rounds, "judge_clocks", tuple))
        for module, name, value in SIDE_BY_SIDE:
            side_by_side.enter_context(patch.object(module, name, value))
        threads = min(max(5, available_cores() // 2), max(1, len(together)))
        graded = stack.enter_context(graded_on_gpu(together, threads))
        timed: Callable[[Path], Report] | None = None

        def report(path: Path) -> Report:
            nonlocal timed
            if path in together:
                return graded(path)
            if timed is None:
                for other in together:
                    graded(other)
                side_by_side.close()
                timed = stack.enter_context(graded_on_gpu(alone, threads=2))
            return timed(path)

        yield report


@pytest.mark.parametrize("path", files_for("cpu"))
def test_on_the_cpu_device(path: Path, cpu_session: Session) -> None:
    how, expected, submission = options(path, "cpu"), expectations(path), read(path)
    right = path.parent.name in ("accepted", "memory-error", "race")
    problem = FEW_CASES if how.quick and right else SMALL_RANKED
    match expected.get("quick"):
        case "few":
            problem = FEW_CASES
        case "small":
            problem = replace(FEW_CASES, ranked=SMALL)
            expected["message"] = shrunk(expected["message"])
            assert isinstance(submission, protocol.Submission)
            update = {"source": shrunk(submission.source)}
            submission = submission.model_copy(update=update)
    # One draw in a hundred has no case for a mistake that shows at a few sizes only.
    report = grade(submission, cpu_session, replace(how, seed=7), problem=problem)
    check(path, report, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("path", files_for("cuda"))
def test_on_a_gpu(path: Path, on_gpu: Callable[[Path], Report]) -> None:
    report = on_gpu(path)
    told = report.model_dump_json(include={"outcome", "sanitizing", "diagnostics", "printed"})
    print(told[:MAX_TOLD])  # the GPU may not be available again soon
    check(path, report, expectations(path))


def test_every_file_describes_its_attempt() -> None:
    ideas = {path.read_text(encoding="utf-8").split("// expect:")[0] for path in FILES}
    assert len(ideas) == len(FILES) >= 60
    assert all(idea.startswith("//") for idea in ideas)


CHEATS = [path for path in FILES if expectations(path).get("rule") == "stale-result"]


@pytest.mark.gpu
@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.stem)
def test_without_the_check_of_timed_launches_the_cheat_would_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check for impossible scores is off as well.

    It is the last check, and would stop cheats that only copy an answer, as they are too fast.
    """
    monkeypatch.setattr(rounds, "CHECK_LIMIT", inf)
    monkeypatch.setattr(measure, "impossible", lambda *_: None)
    report = grade_file(path, "cuda", options(path, "cuda"))
    assert report.verdict == "accepted" and report.score is not None
