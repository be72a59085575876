"""Every record of a GPU has a part that makes it, and its figures are those of the reports."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.cli.main import main
from harness.protocol.report import Report
from lab import gpu_records
from lab.gpu_records import (
    RECORDED,
    ROOT,
    TIMED,
    cases,
    lateness,
    parts,
    passed,
    perform,
    submissions,
    summary,
)
from tests.test_submissions import FILES, cheats_when_timed, expectations, name_of
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


TESTS = """
import pytest


@pytest.mark.parametrize("name", ["a/one", "b/two"])
def test_on_a_gpu(name, record_property):
    record_property("place", PLACE)
    assert not (PLACE == "first" and name == "b/two")
"""


def test_a_part_that_was_stopped_goes_on_with_what_has_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after an interruption: what is on record by then is NAME.partial."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    path, program = tmp_path / "h100-submissions.xml", tmp_path / "test_some.py"
    names = ["test_on_a_gpu[a/one]", "test_on_a_gpu[b/two]"]
    command = ["pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
    command += [*(f"{program}::{name}" for name in names), "--junitxml={}"]
    program.write_text(TESTS.replace("PLACE", "'first'"))
    assert perform(command, path, 60 + PATIENCE).startswith("exit code 1")
    interrupted = '<testcase time="0.1" /></testsuite>'
    path.write_text(path.read_text().replace("</testsuite>", interrupted))
    path.rename(tmp_path / "h100-submissions.xml.partial")
    program.write_text(TESTS.replace("PLACE", "'second'"))
    assert perform(command, path, 60 + PATIENCE).startswith("exit code 0")
    said = {
        name: {each.get("name"): each.get("value") for each in case.iter("property")}
        for name, case in cases(path).items()
    }
    assert [said[name]["place"] for name in names] == ["first", "second"]
    assert passed(path) == {*names}
    assert RECORDED in said[names[0]] and RECORDED not in said[names[1]]
    suite = next(ElementTree.parse(path).iter("testsuite"))
    assert (suite.get("tests"), suite.get("failures")) == ("2", "0")
    path.rename(tmp_path / "h100-submissions.xml.partial")
    assert perform(command, path, 60 + PATIENCE) == "all of it was done"
    assert path.is_file() and len([*tmp_path.glob("h100-*")]) == 1


def test_submissions_that_no_record_has_come_first_and_those_that_are_timed_last() -> None:
    words = submissions("h100")
    names = [word.partition("::")[2] for word in words]
    gpu = [path for path in FILES if expectations(path).get("device") != "cpu"]
    assert {*names} == {f"test_on_a_gpu[{name_of(path)}]" for path in gpu}
    timed = {f"test_on_a_gpu[{name_of(path)}]" for path in gpu if cheats_when_timed(path)}
    together, alone = names[: -len(timed)], names[-len(timed) :]
    assert timed == {*alone}
    known = passed(ROOT / "reports" / "h100-submissions.xml")
    for several in (together, alone):
        recorded = [name in known for name in several]
        assert recorded == sorted(recorded)


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
