"""The command line: finds the commands, and turns what goes wrong into a sentence."""

import argparse
import errno
import importlib
import pkgutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import NoReturn, cast

from harness import __version__
from harness.board import escaping
from harness.cli import commands, preflight
from harness.cli.commands._command import Command, Exit
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
    root = parser(arguments[0] if arguments else None, package)
    chosen, unknown = root.parse_known_args(arguments)
    if unknown:
        chosen.parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    terminal = Terminal()
    try:
        started()
        return run(chosen, terminal)
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
    except (UsageError, JudgeFailure) as error:
        terminal.note(f"{chosen.command}: {error}")
        return Exit.NO_ANSWER
    except BrokenPipeError:
        terminal.hang_up()
        return Exit.NO_ANSWER
    except OSError as error:
        cure = _CURES.get(error.errno or 0)
        reason = f"{error.filename or 'output'}: {error.strerror}."
        terminal.note(f"{chosen.command}: {cure or reason}")
        return Exit.NO_ANSWER
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        terminal.note(f"{chosen.command}: {_CURES[errno.EAGAIN]}")
        return Exit.NO_ANSWER


_CURES = {
    errno.EAGAIN: "No more processes or threads may be started; raise the limit (ulimit -u).",
    errno.EMFILE: "No more files may be opened; raise the limit (ulimit -n).",
    errno.ENOSPC: "The disk is full.",
}


def parser(only: str | None = None, package: ModuleType = commands) -> argparse.ArgumentParser:
    """Return the parser of all commands of `package`, each of which sets `run`.

    only: the name of the only command that is needed, so that no other is imported.
    """
    root = package.__name__.partition(".")[0]
    program = f"python3 -m {root}"
    made = _Parser(
        prog=program,
        description=(importlib.import_module(root).__doc__ or "").partition("\n")[0],
        epilog=f"{program} COMMAND --help shows the options of a command",
    )
    made.add_argument("--version", action="version", version=f"matmul-arena {__version__}")
    subparsers = made.add_subparsers(required=True, metavar="COMMAND", dest="command")
    for name, command in _commands(only, package):
        summary, _, more = (command.__doc__ or "").partition("\n\n")
        subparser = subparsers.add_parser(
            name,
            help=summary.removesuffix("."),
            description=textwrap.fill(f"{summary} {more}", 80),
            epilog=command.HELP,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.arguments(subparser)
        subparser.set_defaults(run=command.run, parser=subparser)
    return made


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Say in one line what is wrong, without control characters that a file's name may have."""
        line = escaping.one_line(message).rstrip(".")
        self.exit(2, f"{self.prog}: {line}. See {self.prog} --help.\n")


def _commands(only: str | None, package: ModuleType) -> Iterator[tuple[str, Command]]:
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    every = [name for name in names if not name.startswith("_")]
    for name in [only] if only in every else every:
        yield name, cast(Command, importlib.import_module(f"{package.__name__}.{name}"))
