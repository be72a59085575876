"""The report goes to JSON and back without loss, and cannot contradict itself."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from harness.protocol.report import (
    Accepted,
    BlockMap,
    CompileError,
    Counterexample,
    Element,
    Report,
    Score,
    Stage,
    Submission,
    Unscored,
    WrongAnswer,
)
from problem.cases import Case, Shape
from tests.judge.stages.fakes import disassembled, kernel, report

REFUSED = CompileError(stage=Stage.READ, message="no")
SUBMISSION = Submission(name="x", author=None, sha256="0" * 64, source="é\0\r\n")


def counterexample(found: float) -> Counterexample:
    return Counterexample(
        case=Case(Shape(1, 2, 3)),
        seed=5,
        error=float("inf"),
        worst_block=(0, 0),
        wrong_blocks=1,
        blocks=1,
        elements=(Element(row=0, column=0, expected=0.1, found=found),),
        map=BlockMap(rows=("#",)),
        pattern="p",
    )


@pytest.mark.parametrize("found", [float("nan"), float("inf"), float("-inf"), 0.1, -0.0, 1e-45])
def test_json_and_back(found: float) -> None:
    wrong = WrongAnswer(stage=Stage.VERIFY, message="m", counterexample=counterexample(found))
    before = report(wrong, submission=SUBMISSION)
    text = before.model_dump_json()
    assert Report.model_validate_json(text).model_dump_json() == text  # NaN equals nothing
    assert str(found).lower() in text.lower()
    json.loads(text, parse_constant=pytest.fail)  # strict JSON: no bare NaN or Infinity


KNOWN = disassembled(kernel())
SCORE = Score(ratio=1, low=0.99, high=1.01, kernel_ms=1, baseline_ms=1, tflops=1, peak_share=None)
UNSCORED = Unscored(reason="device", message="m")


@pytest.mark.parametrize(
    ("score", "facts", "missing"),
    [
        (SCORE, None, "device, kernel, verification, sanitizing, measurement"),
        (UNSCORED, None, "device, kernel, verification, sanitizing"),
        (UNSCORED, kernel().facts, "device, kernel, verification, sanitizing"),
        (UNSCORED, KNOWN, "device, verification, sanitizing"),
    ],
)
def test_an_accepted_report_has_its_evidence(score: Any, facts: Any, missing: str) -> None:
    """The kernel must have been disassembled."""
    with pytest.raises(ValidationError, match=f"needs {missing}"):
        report(Accepted(score=score), kernel=facts)


def test_a_disassembled_kernel_stays_one() -> None:
    assert (
        Report.model_validate_json(report(REFUSED, kernel=KNOWN).model_dump_json()).kernel == KNOWN
    )


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 2},
        {"seed": -1},
        {"outcome": {"verdict": "accepted"}},
        {"outcome": {"verdict": "wrong-answer", "stage": "verify", "message": "m"}},
        {"outcome": {"verdict": "excellent"}},
        {"surprise": 1},
        {"submission": {"name": "x", "author": None, "sha256": "12", "source": ""}},
    ],
)
def test_a_report_edited_by_hand_is_refused(change: dict[str, Any]) -> None:
    edited = json.loads(report(REFUSED).model_dump_json()) | change
    with pytest.raises(ValidationError):
        Report.model_validate_json(json.dumps(edited))
