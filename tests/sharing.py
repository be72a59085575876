"""Results that the processes of one test run share, so that only one of them computes each."""

import fcntl
import functools
import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

folders: list[Path] = []
"""The folder of this test run, which conftest.py sets; none outside of a test run."""


def shared(function: Callable[[str], T]) -> Callable[[str], T]:
    """Keep the results of a function of a text in memory, and in a folder for other processes.

    A process that needs a result that another one is computing waits for it.
    """

    @functools.cache
    @functools.wraps(function)
    def result(text: str) -> T:
        if not folders:
            return function(text)
        name = hashlib.sha256(f"{function.__qualname__} {text}".encode()).hexdigest()
        with open(folders[0] / name, "a+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            if kept := file.read():
                found: T = pickle.loads(kept)
                return found
            made = function(text)
            file.write(pickle.dumps(made))
            return made

    return result
