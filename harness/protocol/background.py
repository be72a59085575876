"""Run one function in a thread of its own."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import ParamSpec, TypeVar

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def begin(
    work: Callable[Parameters, Result], *args: Parameters.args, **kwargs: Parameters.kwargs
) -> Future[Result]:
    """Run work in the background. The thread has its name, which helps when a process hangs."""
    thread = ThreadPoolExecutor(thread_name_prefix=work.__qualname__)
    begun = thread.submit(work, *args, **kwargs)
    thread.shutdown(wait=False)
    return begun
