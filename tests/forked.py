"""Other processes: a function that works once in a process, in a fork, and other Pythons."""

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.waiting import PATIENCE

ROOT = Path(__file__).resolve().parents[1]


def python(*words: object, **how: Any) -> "subprocess.Popen[str]":
    """Start another Python in the project's folder, with pipes for its input and output."""
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    command = [sys.executable, *map(str, words)]
    return subprocess.Popen(command, **{"cwd": ROOT, "text": True, **pipes, **how})


def in_fork(work: Callable[[], Any]) -> Any:
    """Its result, or the exception that it raised as a value; the signal that ended the process,
    as a negative number, where it came to no end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(int(PATIENCE))
            try:
                result = work()
            except BaseException as error:
                result = error
            os.write(writing, pickle.dumps(result))
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    return pickle.loads(said) if said else os.waitstatus_to_exitcode(status)
