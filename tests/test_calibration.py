"""What the judge was held to on a GPU, as it wrote it itself (reports/)."""

from pathlib import Path

from harness.calibrate import Calibration
from harness.devices.device import Arithmetic
from harness.report import Report, Score
from problem.reference import MAX_ERROR

REPORTS = Path(__file__).resolve().parent.parent / "reports"


def test_cublas_beside_itself_scores_one() -> None:
    found = calibration()
    assert isinstance(found.score, Score)
    assert abs(found.score.ratio - 1) < 0.0025


def test_the_rule_accepts_fp32_with_room_and_rejects_less_by_far() -> None:
    worst = {found.arithmetic: found.worst_block for found in calibration().precision}
    assert worst[Arithmetic.FP32] < MAX_ERROR / 4
    assert worst[Arithmetic.TF32] > 10 * MAX_ERROR
    assert worst[Arithmetic.FP16] > 10 * MAX_ERROR


def test_the_same_file_five_times_in_a_row_scores_the_same() -> None:
    lines = (REPORTS / "h100-five-in-a-row.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [Report.model_validate_json(line) for line in lines]
    scores = [report.score.ratio for report in reports if report.score]
    assert len(scores) == 5 and len({report.submission.sha256 for report in reports}) == 1
    assert max(scores) / min(scores) < 1.005
    assert all(sum(time.seconds for time in report.stages) < 60 for report in reports)


def calibration() -> Calibration:
    text = (REPORTS / "h100-calibration.json").read_text(encoding="utf-8")
    return Calibration.model_validate_json(text)
