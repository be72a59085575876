"""Makes a function of a GPU thread that reports its accesses to the runtime.

It is compiled quickly rather than well, since it spends most of its time in the runtime. So its
registers lie in a frame of its own, and it needs no optimisation. LLVM takes several times as long
to split a coroutine and to find out which registers it must keep during a wait.
"""

from __future__ import annotations

from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.codegen.llvm_ir import IrValue, bits, constant
from harness.ptxcpu.codegen.thread import METADATA, Mode, ThreadTranslator
from harness.ptxcpu.codegen.translator import REGISTER, Lowerings
from harness.ptxcpu.ptx.syntax import Label
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import State

_RESUME, _CONTEXT, _THREAD, _PLACE, _REGISTERS = 0, 8, 16, 24, 32
"""Offsets in a frame: the function that resumes the thread, as in a coroutine's frame; its
arguments; where it goes on; and its registers."""

_WAIT = "  ; wait"
"""Marks a branch that is taken when the thread is resumed."""


class WatchedThread(ThreadTranslator):
    """One GPU thread as functions that are called like those of a coroutine."""

    def __init__(
        self, kernel: InlinedKernel, lowerings: Lowerings, block: tuple[int, int, int]
    ) -> None:
        super().__init__(kernel, lowerings, block, Mode.WATCH)
        self._size = _REGISTERS
        """The bytes of the frame so far."""
        self._resumed: list[str] = []
        """The labels at which the thread goes on after a wait."""

    def module(self) -> str:
        frame = IrValue("%frame", "ptr")
        self.emit(f"%c = load ptr, {self.offset(frame, _CONTEXT)}")
        self.emit(f"%t = load i64, {self.offset(frame, _THREAD)}")
        self.emit(f"%place = getelementptr i8, ptr %frame, i64 {_PLACE}")
        self.locate_thread()
        self.declare_registers()
        self.emit("%there = load ptr, ptr %place")
        entered = len(self.lines)
        self.place("begin")
        if self.kernel.body and not isinstance(self.kernel.body[0], Label):
            self.count_block(0)
        self.body()
        self.jump("exit")
        self.place("exit")
        self.store(constant("i32", State.EXITED), self.cell("state"))
        self.emit("ret void")
        places = ", ".join(f"label %{label}" for label in ("begin", *self._resumed))
        self.lines.insert(entered, f"  indirectbr ptr %there, [{places}]")
        resume = ["define internal fastcc void @resume(ptr %frame) {", *self.lines, "}"]
        return "\n".join([self._start(), *resume, *sorted(self.declarations), METADATA])

    def declare_registers(self) -> None:
        for name, size in self.kernel.temporaries.items():
            place = self._add(max(8, size), 16)
            self.emit(f"{self._temporaries[name]} = getelementptr i8, ptr %frame, i64 {place}")

    def wait(self, resumed: str) -> None:
        self._resumed.append(resumed)
        self.emit(f"br label %{resumed}{_WAIT}")  # so far, for the analysis of registers

    def place_registers(self, start: int) -> None:
        lines = self.lines[start:]
        del self.lines[start:]
        places: dict[str, int] = {}
        for line in lines:
            if line.endswith(_WAIT):
                label = line.removesuffix(_WAIT).rpartition("%")[2]
                self.emit(f"store ptr blockaddress(@resume, %{label}), ptr %place")
                self.emit("ret void")
                continue
            access, found, register = line.rpartition(REGISTER)
            if not found:
                self.lines.append(line)
                continue
            place = places.get(register)
            if place is None:
                size = -(-bits(self._types["%r" + register]) // 8)
                place = places[register] = self._add(size, size)
            at = self.value("ptr", f"getelementptr i8, ptr %frame, i64 {place}")
            self.lines.append(f"{access}, {at}")

    def _add(self, size: int, alignment: int) -> int:
        """Return the place in the frame of something of this size."""
        place = -(-self._size // alignment) * alignment
        self._size = place + size
        return place

    def _start(self) -> str:
        """Return the function that makes the frame of a thread, which the caller resumes."""
        size = -(-self._size // 64) * 64
        return f"""define ptr @thread(ptr %c, i64 %t) {{
  %query = icmp slt i64 %t, 0
  br i1 %query, label %tell, label %begin
tell:
  ret ptr inttoptr (i64 {size} to ptr)
begin:
  %at.frames = getelementptr i8, ptr %c, i64 {layout.CONTEXT_OFFSET["frames"]}
  %frames = load ptr, ptr %at.frames
  %offset = mul i64 %t, {size}
  %frame = getelementptr i8, ptr %frames, i64 %offset
  %at.context = getelementptr i8, ptr %frame, i64 {_CONTEXT}
  %at.thread = getelementptr i8, ptr %frame, i64 {_THREAD}
  %at.place = getelementptr i8, ptr %frame, i64 {_PLACE}
  store ptr @resume, ptr %frame
  store ptr %c, ptr %at.context
  store i64 %t, ptr %at.thread
  store ptr blockaddress(@resume, %begin), ptr %at.place
  ret ptr %frame
}}"""
