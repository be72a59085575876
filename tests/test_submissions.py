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

import shlex
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from harness.devices.available import Choice
from harness.grade import Options, grade
from harness.report import (
    DeviceKind,
    HostMemoryKind,
    MemoryFault,
    Outcome,
    Race,
    Report,
    RuleViolation,
)
from harness.stages import rounds
from tests.grading import shared_cpu_workers

FOLDER = Path(__file__).parent / "submissions"
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


@pytest.fixture(scope="module")
def graded(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Report]]:
    """The report of a file on the CPU device; two files are graded at a time."""
    items = cast(list[pytest.Function], request.session.items)
    wanted = [item for item in items if item.originalname == "test_on_the_cpu_device"]
    with shared_cpu_workers(), ThreadPoolExecutor(2) as pool:
        paths: list[Path] = [item.callspec.params["path"] for item in wanted]
        reports = {path: pool.submit(grade, path, options(path, "cpu")) for path in paths}
        yield lambda path: reports[path].result()
        pool.shutdown(cancel_futures=True)


def options(path: Path, device: Choice) -> Options:
    expected = expectations(path)
    chosen = Options(
        device=device, quick="quick" in expected, host_memory=(HostMemoryKind.PAGEABLE,)
    )
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


@pytest.mark.parametrize("path", files_for("cpu"))
def test_on_the_cpu_device(path: Path, graded: Callable[[Path], Report]) -> None:
    check(path, graded(path))


@pytest.mark.gpu
@pytest.mark.parametrize("path", files_for("cuda"))
def test_on_a_gpu(path: Path) -> None:
    check(path, grade(path, options(path, "cuda")))


def test_every_file_says_what_it_tries() -> None:
    ideas = {path.read_text(encoding="utf-8").split("// expect:")[0] for path in FILES}
    assert len(ideas) == len(FILES) >= 60
    assert all(idea.startswith("//") for idea in ideas)


CHEATS = [path for path in FILES if expectations(path).get("rule") == "stale-result"]


@pytest.mark.gpu
@pytest.mark.parametrize("path", CHEATS, ids=lambda path: path.stem)
def test_without_the_check_of_timed_launches_the_cheat_would_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rounds, "_checked", lambda *_: None)
    monkeypatch.setattr(rounds, "_audit", lambda *_: 0.0)
    report = grade(path, options(path, "cuda"))
    assert report.verdict == "accepted" and report.score is not None
    print(f"{path.stem}: unchecked, {report.score.ratio:.2f} times as fast as cuBLAS")
