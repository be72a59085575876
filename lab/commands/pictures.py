"""Make the README's pictures from reports: a grading, the board, a submission live."""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from statistics import median

from harness.arena.progress import GradingProgress, StageProgress
from harness.board.document import Document
from harness.cli.commands._command import Exit
from harness.cli.views.console import SafeConsole, Terminal
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Stage

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_SECONDS = 300.0
WIDTH = 100
"""Characters across a terminal."""

_WEB_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)

HELP = """\
examples:
  python3 -m lab pictures
  python3 -m lab pictures --reports reports --out docs

Nothing is graded: the terminal shows the report with the best score, the board
ranks those of the latest version, and the submission is shown as its
page has it in the middle of the rounds. Chromium draws the pages; the arena's
packages are needed, which `nox -s pictures` installs.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(out_is_folder=True)
    parser.add_argument(
        "--reports",
        type=Path,
        default=Path("reports"),
        metavar="DIR",
        help="of the files DIR/GPU/KERNEL.json (default: %(default)s)",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("docs"), metavar="DIR", help="default: %(default)s"
    )


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.board import committed

    browser = _browser()
    reports = {one.document.id: one.document for one in committed.read(arguments.reports)}
    scored = [each.report for each in reports.values() if each.report.score]
    if not scored:
        raise UsageError(f"no report in {arguments.reports} has a score")
    best = max(scored, key=lambda report: report.score.ratio if report.score else 0.0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "grading.svg").write_text(_terminal(best), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        _write_board(site, list(reports.values()))
        (site / "live.html").write_text(_live(best), encoding="utf-8")
        _shoot(browser, site / "index.html", arguments.out / "board.png", 1250)
        _shoot(browser, site / "live.html", arguments.out / "live.png", 760)
    for name in ("grading.svg", "board.png", "live.png"):
        terminal.note(f"{arguments.out / name}")
    return Exit.YES


def _browser() -> str:
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise UsageError("pictures of pages need Chromium: on Debian, `apt-get install chromium`")
    return found


def _terminal(report: Report) -> str:
    """Return what `grade` shows, as SVG."""
    from harness.cli.views.grading import screen

    console = SafeConsole(
        record=True,
        width=WIDTH,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
    )
    console.print(screen(report))
    command = f"nox -s grade -- {report.submission.name}.cu"
    # Nothing is loaded from elsewhere: the reader's own font does.
    return _WEB_FONTS.sub("", console.export_svg(title=command))


def _write_board(folder: Path, documents: Sequence[Document]) -> None:
    """The leaderboard's site, and what the arena's pages have besides."""
    from harness.board.entry import Entry
    from harness.board.site import Site

    entries = [Entry.of(each.report, each.id)._replace(verified=True) for each in documents]
    Site(folder, entries).write_boards()
    style = files("harness.arena") / "assets" / "arena.css"
    (folder / "assets" / style.name).write_bytes(style.read_bytes())


def _live(report: Report) -> str:
    """A submission's page, in the middle of its rounds."""
    try:
        from harness.arena.states import State
        from harness.arena.store.gradings import Status
        from harness.arena.web.rendering import framed
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the page of a submission needs {error.name}; `nox -s pictures` installs it"
        ) from None
    seconds = {time.stage: time.seconds for time in report.stages}
    left = seconds[Stage.MEASURE] / 2
    began = report.created
    now = began + timedelta(seconds=sum(seconds.values()) - left)
    status = Status(
        id=report.submission.sha256[:16],
        person=0,
        name=report.submission.name,
        author=report.submission.author or "ada",
        pseudonym="",
        sha256=report.submission.sha256,
        received=began,
        state=State.GRADING,
        attempts=1,
        queued=began,
        started=began,
        ended=None,
        progress=_progress(report),
        verdict=None,
        score=None,
        report=None,
        withdrawn=None,
        disqualified=None,
        now=now,
        seconds_left=left,
    )
    return framed(
        "submission.html",
        root="",
        submission=status,
        report=None,
        entry=None,
        owns=True,
        organises=False,
        ended=False,
        cancelled=False,
        shared=False,
        person=None,
    )


def _progress(report: Report) -> GradingProgress:
    """Return the progress of the grading as its worker told it."""
    measured = report.measurement
    assert measured is not None, "a scored report has rounds"
    rounds = measured.rounds[: len(measured.rounds) // 2]
    so_far = median(each.baseline_ms / each.kernel_ms for each in rounds)
    stages = []
    began = report.created
    for time in report.stages:
        found = tuple(_found(report, time.stage))
        stages.append(StageProgress(stage=time.stage, began=began, found=found))
        began += timedelta(seconds=time.seconds)
    last = stages[-1].model_copy(update={"steps": len(rounds) + 1})
    step = f"round {len(rounds) + 1}, {so_far:.3f} × cuBLAS so far"
    return GradingProgress(stages=(*stages[:-1], last), step=step)


def _found(report: Report, stage: Stage) -> Iterator[str]:
    from harness.judge.stages import interim

    if stage is Stage.COMPILE and report.kernel:
        yield from interim.of_kernel(report.kernel, report.diagnostics)
    if stage is Stage.VERIFY and report.verification:
        yield from interim.of_verification(report.verification)
    if stage is Stage.SANITIZE:
        for program in report.sanitizing:
            yield from interim.of_sanitizing(program, ())
    if stage is Stage.MEASURE and report.measurement:
        yield from interim.of_first_launch(report.measurement.first_launch)


def _shoot(browser: str, page: Path, picture: Path, height: int) -> None:
    """A page as the browser draws it. Raises UsageError where it does not."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser,
            "--headless",
            "--no-sandbox",  # the pages are ours
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--virtual-time-budget=5000",  # for the charts
            f"--user-data-dir={profile}",
            f"--window-size=1200,{height}",
            f"--screenshot={picture.resolve()}",
            page.resolve().as_uri(),
        ]
        picture.unlink(missing_ok=True)
        try:
            subprocess.run(command, capture_output=True, timeout=BROWSER_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise UsageError(f"{browser} did not draw {page.name} in time") from None
    if not picture.is_file():
        raise UsageError(f"{browser} did not draw {page.name}; try it by hand")
