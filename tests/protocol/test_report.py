"""The report goes to JSON and back without loss, and cannot contradict itself."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from harness.protocol import report as protocol
from harness.protocol.report import Report
from tests.board import factory
from tests.judge.stages.fakes import disassembled, kernel, report

REFUSED = protocol.CompileError(stage=protocol.Stage.READ, message="no")
SUBMISSION = protocol.Submission(name="x", author=None, sha256="0" * 64, source="é\0\r\n")


@pytest.mark.parametrize("found", [float("nan"), float("inf"), float("-inf"), 0.1, -0.0, 1e-45])
def test_json_and_back(found: float) -> None:
    wrong = factory.wrong().outcome
    (element,) = wrong.counterexample.elements
    elements = (element.model_copy(update={"found": found}),)
    update = {"error": float("inf"), "elements": elements}
    shown = wrong.counterexample.model_copy(update=update)
    outcome = wrong.model_copy(update={"counterexample": shown})
    before = report(outcome, submission=SUBMISSION)
    text = before.model_dump_json()
    assert Report.model_validate_json(text).model_dump_json() == text  # NaN equals nothing
    assert str(found).lower() in text.lower()
    json.loads(text, parse_constant=pytest.fail)  # strict JSON: no bare NaN or Infinity


KNOWN = disassembled(kernel())
SCORE = protocol.Score(
    ratio=1, low=0.99, high=1.01, kernel_ms=1, baseline_ms=1, tflops=1, peak_share=None
)
UNSCORED = protocol.Unscored(reason="device", message="m")


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
    with pytest.raises(ValidationError, match=f"needs {missing}"):
        report(protocol.Accepted(score=score), kernel=facts)
    text = report(REFUSED, kernel=facts).model_dump_json()
    assert Report.model_validate_json(text).kernel == facts, "it stays of its class"
