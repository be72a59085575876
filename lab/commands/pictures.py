"""Make the README's pictures from reports: a grading and the board."""

from __future__ import annotations

import argparse
import io
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from harness.cli.commands._command import Exit
from harness.cli.views.console import SafeConsole, Terminal
from harness.protocol.errors import UsageError
from harness.protocol.report import Report

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER_SECONDS = 300.0
WIDTH = 100
"""The width of the terminal in characters."""

_WEB_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)

HELP = """\
examples:
  python3 -m lab pictures
  python3 -m lab pictures --reports reports --out docs

Nothing is graded: the terminal shows the report with the best score, and the
board ranks those of the latest version. Chromium draws the board.
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
    from harness.board.document import read_folder
    from harness.board.site import Site

    browser = _browser()
    reports = read_folder(arguments.reports)
    scored = [one.document.report for one in reports if one.document.report.score]
    if not scored:
        raise UsageError(f"no report in {arguments.reports} has a score")
    best = max(scored, key=lambda report: report.score.ratio if report.score else 0.0)
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "grading.svg").write_text(_terminal(best), encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        site = Path(folder, "site")
        Site(site, [one.entry for one in reports]).write_boards()
        _shoot(browser, site / "index.html", arguments.out / "board.png", 1250)
    for name in ("grading.svg", "board.png"):
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
    # The picture loads no font: the reader's own is good enough.
    return _WEB_FONTS.sub("", console.export_svg(title=command))


def _shoot(browser: str, page: Path, picture: Path, height: int) -> None:
    """Save a page as the browser draws it. Raises UsageError if it fails."""
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
