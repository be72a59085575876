"""Grades one file again and again: on each GPU alone, on all at once, and beside busy cores."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from harness.protocol.errors import JudgeFailure
from harness.protocol.report import Accepted, Report, Unscored
from lab.studies.job import Grading, Scatter, Situation, Withheld


def scatter(file: Path, gpus: Sequence[str], times: int) -> Scatter:
    """By the judge's own command, in a process for each GPU. Raises JudgeFailure where no grading
    gives a score."""
    found: list[tuple[Situation, list[Report]]] = [
        ("alone", _reports([_grade(gpu, file, times)])) for gpu in gpus
    ]
    if len(gpus) > 1:
        found.append(("all GPUs at once", _reports([_grade(gpu, file, times) for gpu in gpus])))
    with _every_core_busy():
        found.append(("and every core busy", _reports([_grade(gpu, file, times) for gpu in gpus])))
    return summary(found)


def summary(found: Iterable[tuple[Situation, Sequence[Report]]]) -> Scatter:
    """Of reports of one file on GPUs of one model. Raises JudgeFailure where none has a score."""
    gradings: list[Grading] = []
    withheld: list[Withheld] = []
    model = kernel = date = ""
    for situation, reports in found:
        for report in reports:
            if report.score is None or report.device is None:
                withheld.append(Withheld(situation=situation, why=_why(report)))
                continue
            score, model, kernel = report.score, report.device.name, report.submission.name
            date = report.created.date().isoformat()
            grading = Grading(
                situation=situation,
                gpu=report.device.uuid or "",
                score=score.ratio,
                low=score.low,
                high=score.high,
                ms=score.kernel_ms,
            )
            gradings.append(grading)
    if not gradings:
        raise JudgeFailure("none of the gradings gave a score")
    return Scatter(
        model=model,
        date=date,
        kernel=kernel,
        gradings=tuple(gradings),
        withheld=tuple(withheld),
    )


def _why(report: Report) -> str:
    outcome = report.outcome
    if isinstance(outcome, Accepted):
        return outcome.score.message if isinstance(outcome.score, Unscored) else "no GPU"
    return outcome.message


def _grade(gpu: str, file: Path, times: int) -> subprocess.Popen[bytes]:
    """Starts it."""
    words = ("grade", "--gpus", gpu, "--host-memory", "pinned", "--json", "-")
    command = (sys.executable, "-m", "harness", *words, *[str(file)] * times)
    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)


def _reports(started: Sequence[subprocess.Popen[bytes]]) -> list[Report]:
    lines = [line for each in started for line in each.communicate()[0].splitlines()]
    return [Report.model_validate_json(line) for line in lines]


@contextmanager
def _every_core_busy() -> Iterator[None]:
    command = (sys.executable, "-c", "while True: pass")
    busy = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()
