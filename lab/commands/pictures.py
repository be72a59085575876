"""Make the README's pictures from reports: a grading and the board.

example:
  python3 -m lab pictures

Nothing is graded: the terminal shows the report with the best score, and the
board ranks those of the latest version. Chromium draws the board.
"""

import argparse
import io
import re
import tempfile
from pathlib import Path

from harness.board.document import read_folder
from harness.board.site import Site
from harness.cli.commands._command import Exit
from harness.cli.views.console import SafeConsole, Terminal
from harness.cli.views.grading import screen
from harness.protocol.errors import UsageError
from harness.protocol.report import Report
from tests.board import browser

WIDTH = 100
"""The width of the terminal in characters."""

_WEB_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


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
    if browser.MISSING:
        raise UsageError(browser.MISSING)
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
        with browser.chromium(Path(folder, "profile")) as driver:
            browser.resize(driver, 1200, 1250)
            driver.get((site / "index.html").as_uri())
            browser.await_charts(driver)
            driver.save_screenshot(str(arguments.out / "board.png"))
    terminal.note(f"grading.svg and board.png are in {arguments.out}.")
    return Exit.YES


def _terminal(report: Report) -> str:
    """Return what `grade` shows, as SVG."""
    console = SafeConsole(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, color_system="truecolor"
    )
    console.print(screen(report))
    command = f"nox -s grade -- {report.submission.name}.cu"
    # The picture loads no font: the reader's own is good enough.
    return _WEB_FONTS.sub("", console.export_svg(title=command))
