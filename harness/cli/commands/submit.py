"""Submit kernel files to an arena, and show their gradings."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.cli.commands._command import Exit
from harness.cli.commands.grade import exit_code
from harness.cli.views.console import Terminal
from harness.judge.progress import Progress
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Stage

if TYPE_CHECKING:
    from harness.arena.client import Client

KEY_VARIABLE = "MATMUL_ARENA_KEY"

HELP = f"""\
example:
  python3 -m harness submit my_kernel.cu --arena https://arena.example.org

Set {KEY_VARIABLE} to your key. Ctrl-C ends the display; the grading goes on.
Exit codes are those of `grade`: 0 accepted, 1 not accepted, 2 no verdict.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.cu")
    parser.add_argument("--arena", metavar="URL", help="the arena's address")


def run(arguments: argparse.Namespace, terminal: Terminal) -> Exit:
    from harness.arena.client import Client, ClientError

    reports = [path for path in arguments.files if path.suffix == ".json"]
    if reports:
        raise UsageError(f"{reports[0]} is no kernel; `import` enters reports into a store")
    if not arguments.arena:
        raise UsageError(
            "name the arena with --arena URL; on your own board, `grade --submit` enters a result"
        )
    key = os.environ.get(KEY_VARIABLE, "")
    if not key:
        raise UsageError(f"set {KEY_VARIABLE} to your key, which the arena's organiser gives you")
    try:
        return _submit(Client(arguments.arena, key), arguments.files, terminal)
    except ClientError as error:
        raise UsageError(str(error)) from None


class _Stages:
    """Shows the stages that the arena reports."""

    def __init__(self, progress: Progress) -> None:
        self.step = progress.step
        self.found = progress.found
        self._progress = progress

    def begin(self, stage: str, total: int | None) -> None:
        self._progress.begin(Stage(stage), total)


def _submit(client: Client, files: Sequence[Path], terminal: Terminal) -> Exit:
    from harness.cli.views.grading import screen
    from harness.cli.views.progress import TerminalProgress

    # All files are submitted before the first wait, so that they are in the queue together.
    submitted = [(file, client.submit(file.name, _content(file))) for file in files]
    code = Exit.YES
    for file, id in submitted:
        terminal.note(f"{file.name} is submission {id}")
        with TerminalProgress(terminal.results, file.name) as progress:
            status = client.watch(id, _Stages(progress))
        if status["state"] == "cancelled":
            terminal.note(f"{file.name} was cancelled")
            code = max(code, Exit.NO_ANSWER)
            continue
        report = Report.model_validate_json(client.report(id))
        terminal.show(screen(report))
        code = max(code, exit_code(report))
    return code


def _content(file: Path) -> bytes:
    from harness.judge.submission import MAX_BYTES, content

    found = content(file)
    if len(found) > MAX_BYTES:
        raise UsageError(f"{file} is larger than {MAX_BYTES >> 20} MiB; a kernel file is text")
    return found
