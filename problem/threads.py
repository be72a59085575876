"""The cores that this process may use, and work on all of them."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Part = TypeVar("Part")
Result = TypeVar("Result")


def available_cores() -> int:
    """Return the number of cores that this process may use. Others may be reserved for other
    processes."""
    return len(os.sched_getaffinity(0))


def in_threads(work: Callable[[Part], Result], parts: Sequence[Part]) -> list[Result]:
    """Return the result of each part. NumPy releases the interpreter's lock."""
    if len(parts) == 1:
        return [work(parts[0])]
    with ThreadPoolExecutor(available_cores()) as threads:
        return [*threads.map(work, parts)]
