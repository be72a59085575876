"""The interface of a command, and the meaning of its exit code."""

import argparse
from enum import IntEnum
from typing import Protocol

from harness.cli.views.console import Terminal


class Exit(IntEnum):
    YES = 0
    """It is done; a kernel was accepted."""
    NO = 1
    """A kernel was not accepted, or nothing was found."""
    NO_ANSWER = 2
    """The usage was wrong, the judge failed, or this device cannot run the kernel."""
    INTERRUPTED = 130


class Command(Protocol):
    """The contents of a module of this package. Its `run` may raise UsageError."""

    __doc__: str | None

    HELP: str
    """The end of the command's --help: examples, and what else to know."""

    def arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, terminal: Terminal) -> Exit: ...
