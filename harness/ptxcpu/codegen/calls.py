"""Calls of the two functions that CUDA provides to kernels: printf, and the function behind
assert."""

from harness.ptxcpu.analysis.inline import call_parts
from harness.ptxcpu.codegen.llvm_ir import FALSE, constant
from harness.ptxcpu.codegen.translator import Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Address, Instruction, Symbol
from harness.ptxcpu.runtime.layout import Cause


def call_host(t: Translator, index: int, item: Instruction) -> None:
    name, results, arguments = call_parts(item)
    if name == "vprintf":
        if len(arguments) != 2:
            raise CannotTranslate("printf needs a format and its arguments")
        words = [t.load("i64", t.parameter(_argument(x), 8)) for x in arguments]
        t.tell("rt_print", index, *words)
        if results:
            t.store(constant("i32", 0), t.parameter(_argument(results[0]), 4))
    elif name == "__assertfail":
        t.stop_unless(FALSE, Cause.TRAP, index)
    else:
        raise CannotTranslate(f"a call of {name}")


def _argument(name: str) -> Address:
    return Address(Symbol(name), 0)
