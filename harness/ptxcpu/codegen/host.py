"""Translates the device's own runtime: CUDA C++ functions that run on the host, unchecked.

The runtime is written in CUDA C++ because its compiler, NVRTC, and the translator are needed for
kernels anyway: so no second compiler is needed, and the runtime also tests both of them.
"""

from harness.ptxcpu.analysis.inline import InlinedKernel, Memory, call_parts
from harness.ptxcpu.codegen import products
from harness.ptxcpu.codegen.llvm_ir import IrValue, llvm_type
from harness.ptxcpu.codegen.operands import B64, MemoryAccess
from harness.ptxcpu.codegen.thread import Lowerings, Mode, Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.syntax import Address, Function, Instruction, Program, Register, Symbol
from harness.ptxcpu.runtime.layout import State

# What the runtime calls but cannot say in CUDA C++.
_PRIMITIVES = """
define internal i64 @host_start(i64 %entry, i64 %context, i64 %t) {
  %function = inttoptr i64 %entry to ptr
  %c = inttoptr i64 %context to ptr
  %handle = call ptr %function(ptr %c, i64 %t)
  call void @llvm.coro.resume(ptr %handle)
  %number = ptrtoint ptr %handle to i64
  ret i64 %number
}
define internal void @host_resume(i64 %handle) {
  %h = inttoptr i64 %handle to ptr
  call void @llvm.coro.resume(ptr %h)
  ret void
}
define internal void @host_print(i64 %function, i64 %context, i64 %t, i64 %format, i64 %arguments) {
  %f = inttoptr i64 %function to ptr
  call void %f(i64 %context, i64 %t, i64 %format, i64 %arguments)
  ret void
}
declare void @llvm.coro.resume(ptr)
!0 = !{}
!1 = !{!"branch_weights", i32 100000, i32 1}
"""


def host_module(program: Program, lowerings: Lowerings) -> str:
    """Return the IR of all functions of a PTX module. Those named rt_... can be called from
    outside."""
    texts, declarations = products.primitives()
    for function in program.functions.values():
        translator = HostTranslator(program, function, lowerings)
        texts.append(translator.text())
        declarations |= translator.declarations
    return "\n".join([*texts, *sorted(declarations), _PRIMITIVES])


def _as_kernel(function: Function) -> InlinedKernel:
    local = Memory()
    temporaries = {v.name: v.size for v in (*function.parameters, *function.results)}
    for name, variable in function.variables.items():
        if variable.space == "local":
            local.add(name, variable.size, max(16, variable.align))
        else:
            temporaries[name] = variable.size
    return InlinedKernel(
        function.name,
        Memory(),
        Memory(),
        local,
        Memory(),
        temporaries=temporaries,
        registers=function.registers,
        branch_targets=function.branch_targets,
        body=function.body,
    )


class HostTranslator(Translator):
    """One function of the runtime: device addresses are host addresses."""

    def __init__(self, program: Program, function: Function, lowerings: Lowerings) -> None:
        super().__init__(_as_kernel(function), lowerings, (1, 1, 1), Mode.RUN)
        self.program = program
        self.function = function

    def text(self) -> str:
        function = self.function
        for variable in (*function.parameters, *function.results):
            assert variable.size == variable.type.bytes, f"{function.name} passes a struct by value"
        self.declare_registers()
        if self.kernel.local.size:
            self.emit(f"%local = alloca [{self.kernel.local.size} x i8], align 64")
        for i, parameter in enumerate(function.parameters):
            slot = IrValue(self._temporaries[parameter.name], "ptr")
            self.store(IrValue(f"%a{i}", llvm_type(parameter.type)), slot)
        self.body()
        self.jump("exit")
        self.place("exit")
        if function.results:
            result = function.results[0]
            slot = IrValue(self._temporaries[result.name], "ptr")
            self.emit(f"ret {self.load(llvm_type(result.type), slot)}")
        else:
            self.emit("ret void")
        types = ", ".join(f"{llvm_type(p.type)} %a{i}" for i, p in enumerate(function.parameters))
        linkage = "" if function.name.startswith("rt_") else "internal "
        head = f"define {linkage}{self._result(function)} @{function.name}({types}) {{"
        return "\n".join([head, *self.lines, "}"])

    @staticmethod
    def _result(function: Function) -> str:
        return llvm_type(function.results[0].type) if function.results else "void"

    def pointer(self, space: str, address: Address, access: MemoryAccess) -> IrValue:
        if isinstance(address.base, Symbol):
            return self._local(address.base.name, address.offset)
        base = self.read(address.base, B64)
        return self.offset(self.value("ptr", f"inttoptr {base} to ptr"), address.offset)

    def _local(self, name: str, offset: int) -> IrValue:
        place = self.kernel.local.variables.get(name)
        if place is None:
            raise CannotTranslate(f"the runtime has no variable {name}")
        return self.offset(IrValue("%local", "ptr"), place.offset + offset)

    def symbol(self, symbol: Symbol) -> IrValue:
        pointer = self._local(symbol.name, symbol.offset)
        return self.value("i64", f"ptrtoint {pointer} to i64")

    def parameter(self, address: Address, n: int) -> IrValue:
        if isinstance(address.base, Register) or not isinstance(address.base, Symbol):
            raise CannotTranslate("a parameter that is indexed at run time")
        slot = IrValue(self._temporaries[address.base.name], "ptr")
        return self.offset(slot, address.offset)

    def window_base(self, space: str) -> int:
        return 0

    def suspend(self, index: int, state: State, phase: int = 0, **cells: IrValue | int) -> None:
        """Do nothing: a thread of the host never waits for another."""

    def poll(self, index: int) -> None:
        """Do nothing: the runtime has no time limit of its own."""

    def call_function(self, index: int, item: Instruction) -> None:
        name, results, arguments = call_parts(item)
        callee = self.program.functions.get(name) or self.program.declared[name]
        given = []
        for argument, formal in zip(arguments, callee.parameters, strict=True):
            slot = IrValue(self._temporaries[argument], "ptr")
            given.append(self.load(llvm_type(formal.type), slot))
        text = f"@{name}({', '.join(map(str, given))})"
        if results:
            slot = IrValue(self._temporaries[results[0]], "ptr")
            type_ = llvm_type(callee.results[0].type)
            self.store(self.value(type_, f"call {type_} {text}"), slot)
        else:
            self.emit(f"call void {text}")
