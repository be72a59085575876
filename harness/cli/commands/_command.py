"""What a command is, and what its exit codes mean."""

from __future__ import annotations

import argparse
from enum import IntEnum
from typing import Protocol

from harness.cli.views.console import Terminal


class Exit(IntEnum):
    """Ends a command."""

    YES = 0
    """Done; for a judgement: accepted."""
    NO = 1
    """Not accepted, or nothing found."""
    NO_ANSWER = 2
    """Wrong usage, a fault of the judge, or a kernel that this device cannot run."""
    INTERRUPTED = 130


class Command(Protocol):
    """What a module of this package has. Its `run` may raise UsageError."""

    __doc__: str | None

    HELP: str
    """Examples, and what else to know: the end of the command's --help."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, terminal: Terminal) -> Exit: ...
