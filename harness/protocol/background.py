"""One thing that is done while others are, by a thread that ends with it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def begin(
    work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Future[Result]:
    """The thread has the work's name, for who looks at a process that hangs."""
    thread = ThreadPoolExecutor(thread_name_prefix=work.__qualname__)
    begun = thread.submit(work, *args, **kwargs)
    thread.shutdown(wait=False)
    return begun
