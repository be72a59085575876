"""Compiles our own kernels, several at a time."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from queue import SimpleQueue
from typing import Any, TypeVar

from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import (
    Compile,
    Compiled,
    CompilerRequest,
    Disassemble,
    Disassembled,
    Kernel,
)
from harness.protocol.errors import JudgeFailure
from harness.protocol.report import DisassembledKernel

_MOST = 8

AnyAnswer = TypeVar("AnyAnswer", Compiled, Disassembled)


def compile_all(sources: Mapping[str, str], arch: str) -> dict[str, Kernel]:
    """Return the compiled kernels by name. Raises JudgeFailure if one does not compile."""
    requests = {name: Compile(source=source, arch=arch) for name, source in sources.items()}
    return {name: compiled.kernel for name, compiled in _answered(requests, Compiled).items()}


def disassemble_all(kernels: Mapping[str, Kernel]) -> dict[str, DisassembledKernel]:
    """Return the disassembled kernels by name. Raises JudgeFailure if that fails."""
    requests = {name: Disassemble(kernel=kernel) for name, kernel in kernels.items()}
    return {name: found.kernel for name, found in _answered(requests, Disassembled).items()}


def _answered(
    requests: Mapping[str, CompilerRequest[Any]], wanted: type[AnyAnswer]
) -> dict[str, AnyAnswer]:
    count = min(_MOST, os.cpu_count() or 1, len(requests))
    idle: SimpleQueue[Worker] = SimpleQueue()

    def one(name: str) -> AnyAnswer:
        worker = idle.get()
        try:
            answer = worker.ask(requests[name])
        finally:
            idle.put(worker)
        if not isinstance(answer, wanted):
            raise JudgeFailure(f"{name} does not compile: {answer.message}")
        return answer

    with ExitStack() as stack, ThreadPoolExecutor(max(1, count)) as pool:
        for _ in range(count):
            idle.put(stack.enter_context(Worker(Role.COMPILER)))
        return dict(zip(requests, pool.map(one, requests), strict=True))
