"""What the judge was held to on a GPU, as it wrote it itself (reports/)."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.compiling.source import parse
from harness.judge.calibrate import Calibration
from harness.judge.tune.tune import Tuning
from harness.protocol.report import Report, Score
from harness.protocol.timing import Arithmetic
from lab.explain.records import Recording, of_source
from problem.reference import MAX_ERROR

REPORTS = Path(__file__).resolve().parent.parent.parent / "reports"


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


def test_two_hundred_gradings_left_nothing_behind() -> None:
    record = ElementTree.parse(REPORTS / "h100-leaks.xml")
    (case,) = record.iter("testcase")
    assert case.find("failure") is None
    found = {str(item.get("name")): str(item.get("value")) for item in case.iter("property")}
    before, after = re.findall(r"\d+", found["host memory, MiB"])
    security = (REPORTS.parent / "SECURITY.md").read_text(encoding="utf-8")
    assert f"grew from {before} to {after} MiB" in security
    assert found.pop("gradings") == "200"
    assert len(found) == 6
    for name, value in found.items():
        before, after = map(int, re.findall(r"\d+", value))
        assert after == before or (name == "host memory, MiB" and after < 2 * before), name


@pytest.mark.parametrize("name", ["submissions", "cheats-unchecked", "leaks", "tests"])
def test_every_test_on_record_passed(name: str) -> None:
    cases = list(ElementTree.parse(REPORTS / f"h100-{name}.xml").iter("testcase"))
    assert cases
    for case in cases:
        assert not any(case.find(what) is not None for what in ("failure", "error")), case.attrib


def test_the_sweep_on_record_is_of_the_file_as_it_stands() -> None:
    text = (REPORTS / "h100-tune-13_async_copies.json").read_text(encoding="utf-8")
    found = Tuning.model_validate_json(text)
    graded, twelve = report("13_async_copies"), report("12_warp_tiling")
    as_it_stands = found.variants[0].kernel
    assert as_it_stands is not None and graded.kernel is not None and twelve.score is not None
    assert as_it_stands.code_sha256 == graded.kernel.code_sha256
    assert len(found.variants) == found.possible == 9
    assert found.best is not None and found.best.score is not None
    best = f"{found.best.score.ratio:.3f}"
    assert f"has {best}, where 12 has {twelve.score.ratio:.3f}" in what_did_not_pay()


@pytest.mark.parametrize("name", ["counters", "profiles"])
def test_hardware_counters_on_record_are_of_the_files_as_they_stand(name: str) -> None:
    text = (REPORTS / f"h100-{name}.json").read_text(encoding="utf-8")
    for kernel, record in Recording.model_validate_json(text).kernels.items():
        source = parse((REPORTS.parent / "solutions" / f"{kernel}.cu").read_text(encoding="utf-8"))
        assert of_source(record, source) is not None, (
            f"{kernel} has changed since; on a GPU, run: python3 -m harness counters "
            f"--json reports/h100-{name}.json solutions/{kernel}.cu"
            + " --shape 4096x3072x2048"
            * (name == "profiles")
        )


def what_did_not_pay() -> str:
    text = (REPORTS.parent / "solutions" / "README.md").read_text(encoding="utf-8")
    return " ".join(text.split())


def report(name: str) -> Report:
    text = (REPORTS / "h100" / f"{name}.json").read_text(encoding="utf-8")
    return Report.model_validate_json(text)


def test_the_seconds_of_a_grading_are_those_on_record() -> None:
    page = (REPORTS / "h100-times.md").read_text(encoding="utf-8")
    readme = " ".join((REPORTS.parent / "README.md").read_text(encoding="utf-8").split())
    seconds = [
        (kind.startswith("quick"), round(float(number)))
        for kind, number in re.findall(r"^\| (quick.*?|full) \| ([\d.]+) \|", page, re.MULTILINE)
    ]
    assert {number for quick, number in seconds if quick} == {6, 7}
    assert {number for quick, number in seconds if not quick} == {14}
    assert "in six to seven seconds with `--quick`, and in fourteen without" in readme
