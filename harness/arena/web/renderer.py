"""Runs long computations in another process, so that the web process answers meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from anyio import BrokenWorkerProcess, fail_after
from anyio.to_process import run_sync

from harness.arena.problems import Problem

COMPARISON_SECONDS = 20.0
MAX_WAITING = 20
"""The most computations of one process that wait or run."""

Call = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function that can be pickled, with its arguments, elsewhere."""

Result = TypeVar("Result")


class OtherProcess:
    """A process for one computation at a time. AnyIO starts it when it is first needed, and again
    if it has ended."""

    def __init__(self) -> None:
        self._busy = asyncio.Lock()
        self._waiting = 0

    async def call(
        self, function: Callable[[], Result], seconds: float = COMPARISON_SECONDS
    ) -> Result:
        """Call a function that can be pickled, with its arguments. Raises Problem."""
        if self._waiting >= MAX_WAITING:
            raise Problem(503, "Many comparisons are waiting; try again.", retry_after=10)
        self._waiting += 1
        try:
            async with self._busy:
                for _ in range(2):
                    try:
                        with fail_after(seconds):
                            return await run_sync(function, cancellable=True)
                    except TimeoutError:
                        said = f"This took longer than {seconds:.0f} s, and was ended."
                        raise Problem(503, said) from None
                    except BrokenWorkerProcess:
                        pass  # somebody killed it
        finally:
            self._waiting -= 1
        raise Problem(503, "This cannot be shown just now; try again.", retry_after=2)
