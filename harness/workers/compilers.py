"""Compiles our own kernels, several at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue

from harness.errors import JudgeFailure
from harness.protocol.compiler import Compile, Compiled, Kernel
from harness.workers.isolation import Role
from harness.workers.worker import Worker

_MOST = 8


def compile_all(sources: Mapping[str, str], arch: str) -> dict[str, Kernel]:
    """By name. Raises JudgeFailure where one does not compile."""
    count = min(_MOST, os.cpu_count() or 1, len(sources))
    idle: SimpleQueue[Worker] = SimpleQueue()

    def one(name: str) -> Kernel:
        worker = idle.get()
        try:
            answer = worker.ask(Compile(source=sources[name], arch=arch))
        finally:
            idle.put(worker)
        if not isinstance(answer, Compiled):
            raise JudgeFailure(f"{name} does not compile: {answer.message}")
        return answer.kernel

    with ExitStack() as stack, ThreadPoolExecutor(max(1, count)) as pool:
        for _ in range(count):
            idle.put(stack.enter_context(Worker(Role.COMPILER)))
        return dict(zip(sources, pool.map(one, sources), strict=True))
