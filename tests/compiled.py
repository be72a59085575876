"""Kernels that are compiled in this process, as a worker compiles those of submissions."""

import functools

from harness.compiling.compiler import compile_source, disassemble_kernel
from harness.protocol.compiler import Compile, Compiled, Disassemble, Kernel
from harness.protocol.report import CompileError, Diagnostic, DisassembledKernel


@functools.cache
def compiled(source: str) -> Kernel:
    answer = compile_source(Compile(source=source))
    assert isinstance(answer, Compiled), answer
    return answer.kernel


@functools.cache
def disassembled(source: str) -> DisassembledKernel:
    """Return the kernel with facts from its machine code, which take half a second."""
    answer = disassemble_kernel(Disassemble(kernel=compiled(source)))
    assert not answer.warnings
    return answer.kernel


def warnings(source: str) -> tuple[Diagnostic, ...]:
    answer = compile_source(Compile(source=source))
    assert isinstance(answer, Compiled), answer
    return answer.warnings


def refused(source: str) -> CompileError:
    answer = compile_source(Compile(source=source))
    assert isinstance(answer, CompileError), answer
    return answer
