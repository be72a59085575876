"""The compile worker as tests use it: source text in, its answer out."""

from collections.abc import Callable

from harness.protocol.compiler import Compiled
from harness.protocol.report import CompileError, DisassembledKernel, RuntimeFault

Compiling = Callable[[str], Compiled | CompileError | RuntimeFault]

Disassembling = Callable[[str], DisassembledKernel]
