"""Every record of a GPU has a part that makes it, and its figures are those of the reports."""

from __future__ import annotations

import pytest

from harness.cli import main
from harness.report import Report
from tests.gpu_records import ROOT, SOLUTIONS, lateness, parts, summary

REPORT = Report.model_validate_json((ROOT / "reports/h100/16_register_banks.json").read_bytes())


def test_every_record_that_is_kept_has_a_part_that_makes_it() -> None:
    names = set(parts("h100"))
    for kept in ("submissions.xml", "cheats-unchecked.xml", "tests.xml", "calibration.json"):
        assert f"h100-{kept}" in names and (ROOT / "reports" / f"h100-{kept}").is_file()
    assert {f"h100-clocks/{file.stem}.json" for file in SOLUTIONS} <= names


@pytest.mark.parametrize("command", ["grade", "calibrate"])
def test_the_commands_take_the_options_that_parts_give_them(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = capsys.readouterr().out
    asked = {
        word
        for arguments in parts("h100").values()
        if arguments[:2] == ["harness", command]
        for word in arguments
        if word.startswith("--")
    }
    assert asked and all(option in told for option in asked)


def test_the_spread_of_the_clocks_is_what_the_kernel_is_later_than_cublas() -> None:
    assert REPORT.measurement is not None
    assert lateness(REPORT) == []  # of a judge that had one clock
    rounds = tuple(
        r.model_copy(
            update={
                "kernel_host_ms": r.kernel_ms + 0.03 + number / 1000,
                "baseline_host_ms": r.baseline_ms + 0.02,
            }
        )
        for number, r in enumerate(REPORT.measurement.rounds)
    )
    measurement = REPORT.measurement.model_copy(update={"rounds": rounds})
    late = lateness(REPORT.model_copy(update={"measurement": measurement}))
    assert late == pytest.approx([0.01 + number / 1000 for number in range(len(rounds))])


def test_a_summary_has_verdict_score_and_times() -> None:
    (name, found), *rest = summary([REPORT]).items()
    assert not rest and name == "16_register_banks, full" and isinstance(found, dict)
    assert REPORT.score is not None and found["score"] == REPORT.score.ratio
    assert set(found["seconds"]) == {stage.stage for stage in REPORT.stages}
