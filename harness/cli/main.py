"""The command line: finds the commands, and turns what goes wrong into a sentence."""

import argparse
import ast
import errno
import importlib
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from harness import __version__
from harness.board import escaping
from harness.cli import commands, preflight
from harness.cli.commands._command import Exit, reason
from harness.cli.views.console import Terminal
from harness.protocol.errors import JudgeFailure, UsageError


def main(
    arguments: Sequence[str],
    package: ModuleType = commands,
    started: Callable[[], None] = lambda: None,
) -> int:
    """Run a command of `package`, and return its exit code.

    started: called when everything is imported, from when on an interruption is an exception.
    """
    terminal = Terminal()
    try:
        chosen = parse(arguments, package)
        started()
        return run(chosen, terminal)
    except ModuleNotFoundError as error:
        session = "arena" if package is commands else "lab"
        terminal.note(f"This needs {error.name}; `nox -s {session}` installs all that it needs.")
        return Exit.NO_ANSWER
    except KeyboardInterrupt:
        terminal.note("interrupted")
        return Exit.INTERRUPTED


def run(chosen: argparse.Namespace, terminal: Terminal) -> Exit:
    """Run the chosen command; turn an error into a sentence and an exit code."""
    try:
        preflight.check(chosen)
        if str(getattr(chosen, "json", "")) == "-":
            terminal.leave_output_to_programs()
        code: Exit = chosen.run(chosen, terminal)
        return code
    except BrokenPipeError:
        terminal.hang_up()
        return Exit.NO_ANSWER
    except (UsageError, JudgeFailure, OSError) as error:
        terminal.note(f"{chosen.command}: {reason(error)}")
        return Exit.NO_ANSWER
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        terminal.note(f"{chosen.command}: {reason(OSError(errno.EAGAIN, ''))}")
        return Exit.NO_ANSWER


def parse(arguments: Sequence[str], package: ModuleType = commands) -> argparse.Namespace:
    """Return the arguments of a command of `package`, which set `run`. Only its module is imported,
    so that --help answers at once."""
    root = package.__name__.partition(".")[0]
    program = f"python3 -m {root}"
    parser = _Parser(
        prog=program,
        description=(importlib.import_module(root).__doc__ or "").partition("\n")[0],
        epilog=f"{program} COMMAND --help shows the options of a command",
    )
    parser.add_argument("--version", action="version", version=f"matmul-arena {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for file in sorted(Path(package.__path__[0]).glob("[!_]*.py")):
        described = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
        summary, _, more = described.partition("\n\n")
        subparser = subparsers.add_parser(
            file.stem,
            help=summary.removesuffix("."),
            description=textwrap.fill(summary, 80),
            epilog=more,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        if arguments[:1] == [file.stem]:
            command = importlib.import_module(f"{package.__name__}.{file.stem}")
            command.arguments(subparser)
            subparser.set_defaults(run=command.run, parser=subparser)
    chosen, unknown = parser.parse_known_args(arguments)
    if unknown:
        chosen.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    return chosen


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, without control characters that a file's name may have."""
        line = escaping.one_line(message).rstrip(".")
        self.exit(2, f"{self.prog}: {line}. See {self.prog} --help.\n")
