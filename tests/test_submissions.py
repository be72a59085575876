"""Every file of tests/submissions gets the verdict of its folder, for the right reason.

A file says what to expect in a comment line, `// expect: key=value ...`:

    message         words of the outcome's message (an accepted file has none)
    cpu             words of the message on the CPU device, which knows more than a GPU says
    stage, rule     where it was stopped, and by which rule
    finding         hazards, one of which must be the first finding's
    line            line of the first compiler error or finding
    warning         words of a warning
    absent          words that must stand nowhere in the report but in the source
    device          the only device that can show it: cpu or cuda
    seconds         time limit of one launch
    compile_seconds time limit of the compiler
    quick           yes: a sample of the cases is enough to show what a full grading shows
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from harness.grade import GradingOptions
from harness.report import (
    DeviceKind,
    HostMemoryKind,
    MemoryFault,
    Outcome,
    Race,
    Report,
    RuleViolation,
)
from harness.stages import measure, rounds
from harness.workers.session import Choice
from tests.grading import grade_file, graded, wanted

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "tests" / "submissions"
FILES = sorted(FOLDER.glob("*/*.cu"))
KEYS = {
    *("message", "cpu", "stage", "rule", "finding", "line", "warning", "absent", "device"),
    *("seconds", "compile_seconds", "quick"),
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


def files_for(device: Choice) -> list[object]:
    return [
        pytest.param(path, id=f"{path.parent.name}/{path.stem}")
        for path in FILES
        if expectations(path).get("device", device) == device
    ]


def options(path: Path) -> GradingOptions:
    expected = expectations(path)
    chosen = GradingOptions(quick="quick" in expected, host_memory=(HostMemoryKind.PAGEABLE,))
    limits = {
        key: float(expected[key]) for key in ("seconds", "compile_seconds") if key in expected
    }
    return replace(chosen, **limits)  # type: ignore[arg-type]  # both are floats


def check(path: Path, report: Report) -> None:
    expected = expectations(path)
    outcome = report.outcome
    message = getattr(outcome, "message", "")
    assert outcome.verdict == path.parent.name, message
    assert expected["message"] in message
    if report.device is not None and report.device.kind is DeviceKind.CPU:
        assert expected.get("cpu", "") in message
    if "stage" in expected:
        assert getattr(outcome, "stage", None) == expected["stage"]
    if "rule" in expected:
        assert isinstance(outcome, RuleViolation) and outcome.rule == expected["rule"]
    if "finding" in expected and not path.match("*/race/*") and isinstance(outcome, Race):
        pytest.fail("a race where another hazard was expected")
    if "finding" in expected and isinstance(outcome, MemoryFault | Race) and outcome.findings:
        assert outcome.findings[0].hazard in expected["finding"].split(",")
    if "line" in expected:
        assert first_line(outcome) == int(expected["line"])
    if "warning" in expected:
        assert any(expected["warning"] in found.message for found in report.diagnostics)
    if "absent" in expected:
        said = report.model_copy(
            update={
                "submission": report.submission.model_copy(update={"source": ""}),
                "printed": "",
            }
        )
        assert expected["absent"] not in said.model_dump_json()


def first_line(outcome: Outcome) -> int | None:
    if isinstance(outcome, MemoryFault | Race):
        return outcome.findings[0].at.line
    diagnostics = getattr(outcome, "diagnostics", ())
    return diagnostics[0].line if diagnostics else None


@pytest.fixture(scope="module")
def on_cpu(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Report]]:
    paths = wanted(request, "test_on_the_cpu_device")
    with graded("cpu", {path: options(path) for path in paths}, threads=2) as reports:
        yield reports


def cheats_when_timed(path: Path) -> bool:
    """Whether the verdict comes from timed launches, which too much company would disturb."""
    return path.parent.name == "rule-violation" and expectations(path).get("stage") == "measure"


@pytest.fixture(scope="module")
def on_gpu(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Report]]:
    paths = {path: options(path) for path in wanted(request, "test_on_a_gpu")}
    together = {path: how for path, how in paths.items() if not cheats_when_timed(path)}
    with graded("cuda", together, threads=5) as reports:
        done = {path: reports(path) for path in together}
    rest = {path: how for path, how in paths.items() if path not in together}
    with graded("cuda", rest, threads=2) as reports:
        yield lambda path: done[path] if path in done else reports(path)


@pytest.mark.parametrize("path", files_for("cpu"))
def test_on_the_cpu_device(path: Path, on_cpu: Callable[[Path], Report]) -> None:
    check(path, on_cpu(path))


@pytest.mark.gpu
@pytest.mark.parametrize("path", files_for("cuda"))
def test_on_a_gpu(
    path: Path, on_gpu: Callable[[Path], Report], record_property: Callable[[str, object], None]
) -> None:
    report = on_gpu(path)
    record_property("verdict", report.verdict)
    record_property("message", getattr(report.outcome, "message", ""))
    check(path, report)


def test_every_file_says_what_it_tries() -> None:
    ideas = {path.read_text(encoding="utf-8").split("// expect:")[0] for path in FILES}
    assert len(ideas) == len(FILES) >= 60
    assert all(idea.startswith("//") for idea in ideas)


def test_the_counts_that_are_claimed_are_those_of_the_files_and_of_the_run_on_a_gpu() -> None:
    passed = Counter[str]()
    for case in ElementTree.parse(ROOT / "reports" / "h100-submissions.xml").iter("testcase"):
        folder = str(case.get("name")).partition("[")[2].partition("/")[0]
        found = {item.get("name"): item.get("value") for item in case.iter("property")}
        assert case.find("failure") is None and found["verdict"] == folder, case.get("name")
        passed[folder] += 1
    claimed = re.findall(
        r"^\| `([a-z-]+)` \| (\d+) \| (\d+) \| (\d+) \|$",
        (ROOT / "SECURITY.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    devices = {path: expectations(path).get("device", "any") for path in FILES}
    assert {verdict: tuple(map(int, counts)) for verdict, *counts in claimed} == {
        folder: (
            sum(path.parent.name == folder for path in FILES),
            sum(path.parent.name == folder and devices[path] != "cuda" for path in FILES),
            passed[folder],
        )
        for folder in {path.parent.name for path in FILES}
    }


CHEATS = [path for path in FILES if expectations(path).get("rule") == "stale-result"]


def test_the_scores_that_cheats_would_have_had_are_those_on_record() -> None:
    record = ElementTree.parse(ROOT / "reports" / "h100-cheats-unchecked.xml")
    scores = {
        str(case.get("name")).partition("[")[2].rstrip("]"): float(str(item.get("value")))
        for case in record.iter("testcase")
        for item in case.iter("property")
    }
    assert set(scores) == {path.stem for path in CHEATS}
    claimed = dict(
        re.findall(r"`(\w+)`,?[^;`]*? with (\d+\.\d\d)", (ROOT / "SECURITY.md").read_text("utf-8"))
    )
    assert len(claimed) == 5
    assert claimed == {name: f"{scores[name]:.2f}" for name in claimed}


@pytest.mark.gpu
@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.stem)
def test_without_the_check_of_timed_launches_the_cheat_would_pass(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Those that copy an answer are then so fast that the last check, of scores that no GPU can
    reach, stops them; so that is off too."""
    monkeypatch.setattr(rounds, "_wrong", lambda *_: None)
    monkeypatch.setattr(rounds._Measuring, "audit", lambda *_: 0.0)
    monkeypatch.setattr(measure, "impossible", lambda *_: None)
    report = grade_file(path, "cuda", options(path))
    assert report.verdict == "accepted" and report.score is not None
    record_property("unchecked score", report.score.ratio)
