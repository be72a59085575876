"""Every record of a GPU has a part that makes it, and its figures are those of the reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.cli import main
from harness.report import Report
from tests import gpu_records
from tests.gpu_records import ROOT, TIMED, lateness, parts, perform, summary
from tests.waiting import PATIENCE

REPORT = Report.model_validate_json((ROOT / "reports/h100/16_register_banks.json").read_bytes())


def test_every_record_that_is_kept_has_a_part_that_makes_it() -> None:
    names = set(parts("h100"))
    for kept in ("submissions.xml", "cheats-unchecked.xml", "tests.xml", "calibration.json"):
        assert f"h100-{kept}" in names and (ROOT / "reports" / f"h100-{kept}").is_file()


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
    measurement = REPORT.measurement
    assert measurement is not None

    def with_host_times(kernel: float | None, baseline: float | None) -> Report:
        """So much later than the GPU's clock, and a microsecond more from round to round."""
        rounds = tuple(
            r.model_copy(
                update={
                    "kernel_host_ms": kernel and r.kernel_ms + kernel + number / 1000,
                    "baseline_host_ms": baseline and r.baseline_ms + baseline,
                }
            )
            for number, r in enumerate(measurement.rounds)
        )
        found = measurement.model_copy(update={"rounds": rounds})
        return REPORT.model_copy(update={"measurement": found})

    assert lateness(with_host_times(None, None)) == []  # of a judge that had one clock
    late = lateness(with_host_times(0.03, 0.02))
    expected = [0.01 + number / 1000 for number, _ in enumerate(measurement.rounds)]
    assert late == pytest.approx(expected)


def test_a_summary_has_verdict_score_and_times() -> None:
    (name, found), *rest = summary([REPORT]).items()
    assert not rest and name == "16_register_banks, full" and isinstance(found, dict)
    assert REPORT.score is not None and found["score"] == REPORT.score.ratio
    assert set(found["seconds"]) == {stage.stage for stage in REPORT.stages}


def test_the_timed_solution_is_there() -> None:
    assert TIMED.is_file()


def test_a_part_that_ends_has_its_file_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "new" / "h100-full.json"
    said = perform(["zipfile", "-c", "{}", str(TIMED)], path, 60 + PATIENCE)
    assert said.startswith("exit code 0") and [*path.parent.iterdir()] == [path]


def test_a_part_without_an_end_is_stopped(tmp_path: Path) -> None:
    assert perform(["http.server", "0"], tmp_path / "x.xml", 1).startswith("stopped after")


def test_parts_can_be_chosen_and_are_not_done_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpu_records, "perform", lambda command, path, seconds: path.write_text("x"))
    (tmp_path / "h100-quick.json").write_text(REPORT.model_dump_json())
    words = ["gpu_records", "h100", "--into", str(tmp_path), "--only", "quick", "tests"]
    monkeypatch.setattr("sys.argv", words)
    assert gpu_records.main() == 0
    assert (tmp_path / "h100-tests.xml").is_file()
    assert not (tmp_path / "h100-submissions.xml").exists()
    assert "h100-quick.json: there already" in capsys.readouterr().out
    found = json.loads((tmp_path / "h100-summary.json").read_text())
    assert "16_register_banks, full" in found
