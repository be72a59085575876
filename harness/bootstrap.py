"""Run a command with the right interpreter, and end it cleanly when it is interrupted.

This module imports the standard library only, and runs on Pythons that are too old for the rest.
"""

import os
import signal
import sys
import time

OLDEST = (3, 11)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ENVIRONMENT = os.path.join(ROOT, ".nox", "environment")
INSTALL = "python3 -m pip install nox && python3 -m nox -s doctor"
_LIBRARIES = ("rich", "numpy", "pydantic", "llvmlite", "tree_sitter")


class Startup:
    """Handles signals while the command's modules are still being imported.

    An exception would be lost there: some code that runs during imports catches every exception. So
    a signal ends the process at once, after `undo`. The Terminal of a running command uses
    exceptions.
    """

    def __init__(self):
        _open_standard_streams()
        self.undo = None
        self._held = False
        self._pending = 0
        self._deaf_until = 0.0
        self._numbers = []
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._end_now)
                self._numbers.append(number)

    def run(self, step):
        """Call `step`; a signal that arrives meanwhile takes effect when it has returned."""
        self._held = True
        try:
            step()
        finally:
            self._held = False
        if self._pending:
            self._end_now(self._pending, None)

    def over(self):
        """Let signals raise exceptions from now on."""
        for number in self._numbers:
            signal.signal(number, self._raise)
        sys.unraisablehook = _raise_later

    def _raise(self, number, _):
        """Raise an exception, unless one was raised just now: a second signal would interrupt the
        removal of processes and files."""
        if time.monotonic() < self._deaf_until:
            return
        self._deaf_until = time.monotonic() + PATIENCE_SECONDS
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        _raise_exit(number)

    def _end_now(self, number, _):
        if self._held:
            self._pending = number
            return
        if self.undo is not None:
            self.undo()
        if number == signal.SIGINT:
            os.write(2, b"interrupted\n")
        os._exit(128 + number)


def _open_standard_streams():
    """Open those that the caller has closed; other files would get their numbers."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            os.dup2(os.open(os.devnull, os.O_RDWR), number)
            setattr(sys, name, open(number, "w" if number else "r"))  # noqa: SIM115


PATIENCE_SECONDS = 5.0


def _raise_exit(number):
    """Raise SystemExit, and once more where a library has caught it or waits for something."""

    def again(*_):
        raise SystemExit(128 + number)

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_SECONDS, PATIENCE_SECONDS)
    raise SystemExit(128 + number)


def _raise_later(ignored):
    """Raise an exit once more that a library could not pass on, instead of showing a traceback."""
    if not isinstance(ignored.exc_value, (KeyboardInterrupt, SystemExit)):
        sys.__unraisablehook__(ignored)
        return

    def again(*_):
        raise ignored.exc_value

    signal.signal(signal.SIGALRM, again)
    signal.setitimer(signal.ITIMER_REAL, 0.1, signal.getitimer(signal.ITIMER_REAL)[1])


def enter_environment(package):
    """Replace this process by one of the project's environment if the libraries are missing.

    package: what `python -m` runs.
    """
    import importlib.util

    if not sys.platform.startswith("linux"):
        raise SystemExit("matmul-arena needs Linux; on Windows, run it in WSL 2.")
    if sys.version_info >= OLDEST and all(map(importlib.util.find_spec, _LIBRARIES)):
        return
    python = os.path.join(ENVIRONMENT, "bin", "python")
    if not os.path.exists(python) or os.path.realpath(sys.prefix) == os.path.realpath(ENVIRONMENT):
        if sys.version_info < OLDEST:
            raise SystemExit(
                "matmul-arena needs Python %d.%d or newer, and this is %d.%d."
                % (OLDEST + sys.version_info[:2])
            )
        raise SystemExit("matmul-arena is not installed yet. Install it with: " + INSTALL)
    os.execv(python, [python, "-m", package] + sys.argv[1:])
