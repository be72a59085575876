"""Makes one coroutine per GPU thread of a kernel. It is suspended only where threads wait for each
other, and checks every access to memory."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from math import inf
from typing import NamedTuple, Protocol

from harness.ptxcpu.analysis.inline import DYNAMIC, InlinedKernel, call_parts
from harness.ptxcpu.analysis.pointers import pointer_windows
from harness.ptxcpu.analysis.selection import Selection, selections
from harness.ptxcpu.codegen.llvm_ir import FALSE, IrValue, constant
from harness.ptxcpu.codegen.operands import (
    PREDICATE,
    MatrixProduct,
    MemoryAccess,
    OperandTranslator,
)
from harness.ptxcpu.codegen.product_batch import ProductBatch
from harness.ptxcpu.codegen.split import split
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.grid import MULTIPROCESSORS
from harness.ptxcpu.ptx.syntax import Address, Instruction, Label, Not, Operand, Register, Symbol
from harness.ptxcpu.ptx.types import TYPES
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.runtime.layout import Access, Cause, Collective, Event, State, Window

_SINCE_1970 = 1_790_000_000_000_000_000
"""The value of an H100 in nanoseconds, so that a kernel does not recognise this device by it."""


_B32 = TYPES["b32"]

_OF_CHECKS = {Collective.WGMMA_FENCE, Collective.WGMMA_COMMIT, Collective.WGMMA_WAIT}
"""They order what asynchronous products read, which the checks alone look at."""

LONG_BLOCK = 500
"""After this many instructions a watched basic block is split by a check of the time limit, since
LLVM's compile time grows with the square of its length."""


class Mode(Enum):
    RUN = "run"
    """Every access is checked inline; the first fault ends the launch."""
    WATCH = "watch"
    """Accesses, branches and basic blocks are reported to the runtime, which uses the instruments
    of the launch: checks, which continue after a fault; counters; or none."""


class Module(NamedTuple):
    """LLVM IR as text. is_split: its coroutine is split already, and needs no optimisation."""

    text: str
    is_split: bool


class Lowerings(Protocol):
    """The lowerings of all instructions to IR."""

    def lower(self, t: Translator, item: Instruction, index: int) -> None:
        """Emit the IR of one instruction. Raises CannotTranslate for one that is not known."""


class Translator(OperandTranslator):
    """One GPU thread as a coroutine `ptr @thread(context, thread index)`.

    Called with a negative index it returns the bytes of its frame. The lowerings of instructions
    use this class. Subclasses make one coroutine of several threads, or no coroutine at all.
    """

    def __init__(
        self,
        kernel: InlinedKernel,
        lowerings: Lowerings,
        block: tuple[int, int, int],
        mode: Mode,
    ) -> None:
        super().__init__(kernel)
        self._lowerings = lowerings
        self.block = block
        self.mode = mode
        self._products = ProductBatch()
        self._is_guarded = False
        self._since_label = 0
        """The number of instructions of this basic block so far."""

    # -- the function around the body

    attributes = ""
    """The attributes of the function in LLVM."""
    faulty = "exit"
    """The label at which a thread ends that cannot go on."""

    def module(self, most: float = inf) -> Module:
        """Return the whole IR module. most: a coroutine of more characters is split here, because
        LLVM would take long for it."""
        self._coroutine()
        is_split = sum(map(len, self.lines)) > most
        if is_split:
            frames_at = layout.CONTEXT_OFFSET["frames"]
            lines = split(self.lines, self.value_types, frames_at, self.attributes)
        else:
            how = "presplitcoroutine coro_only_destroy_when_complete"  # in fact none is destroyed
            head = f"define ptr @thread(ptr noalias %c, i64 %t) {how} {self.attributes} {{"
            lines = [head, *self.lines, "}"]
        text = "\n".join([*lines, *sorted(self.declarations), CORO, METADATA])
        return Module(text, is_split)

    def _coroutine(self) -> None:
        """Emit the body of the coroutine."""
        self.declare_registers()
        for line in """%id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)
            %size.exact = call i64 @llvm.coro.size.i64()
            %size.more = add i64 %size.exact, 63
            %size = and i64 %size.more, -64
            %query = icmp slt i64 %t, 0
            br i1 %query, label %tell, label %begin""".splitlines():
            self.emit(line.strip())
        self.place("tell")
        self.emit("%told = inttoptr i64 %size to ptr")
        self.emit("ret ptr %told")
        self.place("begin")
        frame = self.op("mul", IrValue("%t", "i64"), IrValue("%size", "i64"))
        memory = self.offset(self.field("frames", "ptr"), frame)
        self.emit(f"%handle = call ptr @llvm.coro.begin(token %id, {memory})")
        self.locate_thread()
        # The caller resumes the coroutine before the kernel begins. LLVM splits a coroutine into
        # its start and the rest, and would compile twice what both reach.
        self._wait("started")
        if self.kernel.body and not isinstance(self.kernel.body[0], Label):
            self.count_block(0)
        self.body()
        self.jump("exit")
        self.end()
        self.emit("%over = call i8 @llvm.coro.suspend(token none, i1 true)")
        self.emit("switch i8 %over, label %end [i8 0, label %never i8 1, label %never]")
        self.place("never")
        self.emit("call void @llvm.trap()")
        self.emit("unreachable")
        self.place("end")
        self.emit("call void @llvm.coro.end(ptr null, i1 false, token none)")
        self.emit("ret ptr %handle")

    def locate_thread(self) -> None:
        """Compute where the thread is in its block, and where its memory is."""
        x, y, _ = self.block
        threads = self.field("thread", "ptr")
        for line in f"""%t32 = trunc i64 %t to i32
            %lane = and i32 %t32, 31
            %warp = lshr i32 %t32, 5
            %me = getelementptr [{layout.THREAD_BYTES} x i8], {threads}, i64 %t
            %tid.x = urem i32 %t32, {x}
            %tid.yz = udiv i32 %t32, {x}
            %tid.y = urem i32 %tid.yz, {y}
            %tid.z = udiv i32 %tid.yz, {y}""".splitlines():
            self.emit(line.strip())
        # It is loaded, because LLVM would compute it again wherever it is used after a wait.
        self.emit(f"%lane_buffer = load ptr, {self.cell('lane_buffer')}")

    def end(self) -> None:
        """Emit how the thread ends."""
        self.place("exit")
        self.store(constant("i32", State.EXITED), self.cell("state"))

    def field(self, name: str, type_: str) -> IrValue:
        """Return a field of the Context that does not change while a block runs."""
        where = self.offset(IrValue("%c", "ptr"), layout.CONTEXT_OFFSET[name])
        return self.load(type_, where, ", !invariant.load !0")

    def cell(self, name: str) -> IrValue:
        """Return the address of a field of this thread's record."""
        return self.offset(IrValue("%me", "ptr"), layout.THREAD_OFFSET[name])

    def thread_index(self) -> IrValue:
        return IrValue("%t", "i64")

    # -- meeting the other threads

    def suspend(self, index: int, state: State, phase: int = 0, **cells: IrValue | int) -> None:
        """Wait, in a state that the scheduler knows how to end."""
        for name, given in {"state": int(state), "pc": index * 4 + phase, **cells}.items():
            width = "i64" if layout.THREAD[name] == "long long" else "i32"
            value = given if isinstance(given, IrValue) else constant(width, given)
            self.store(value, self.cell(name))
        self._wait(self.new_label())

    def _wait(self, resumed: str) -> None:
        """Return to the scheduler, and go on at a label when it resumes this thread."""
        how = self.value("i8", "call i8 @llvm.coro.suspend(token none, i1 false)")
        self.emit(f"switch {how}, label %end [i8 0, label %{resumed} i8 1, label %never]")
        self.place(resumed)  # what the watched vector path holds changes at a wait

    def lane_words(self, word: int) -> IrValue:
        """Return the address of one of this lane's words: [warp][word][lane]."""
        return self.offset(IrValue("%lane_buffer", "ptr"), 4 * word * layout.LANES)

    def collective(
        self,
        index: int,
        which: Collective,
        words: list[IrValue],
        results: int = 0,
        mask: IrValue | int = -1,
        argument: IrValue | int = 0,
        phase: int = 0,
    ) -> list[IrValue]:
        """Publish words, let the runtime act for all lanes of the mask, read the results."""
        if self.mode is Mode.RUN and which in _OF_CHECKS:
            return []
        for i, given in enumerate(words):
            self.store(given, self.lane_words(i))
        self.suspend(
            index,
            State.COLLECTIVE,
            phase,
            mask=mask,
            collective=int(which),
            argument=argument,
        )
        if words:
            self._products.forget_published()
        return [self.load("i32", self.lane_words(i)) for i in range(results)]

    def write(self, operand: Operand, value: IrValue, signed: bool = False) -> None:
        super().write(operand, value, signed)
        if isinstance(operand, Register):
            self._products.forget(operand.name)

    def multiply(self, index: int, product: MatrixProduct) -> None:
        """Publish what is not in the lane buffer yet. The product is computed when the lanes meet
        in `finish_products`."""
        batch = self._products
        if not batch.can_add(product):
            self.finish_products()
        if not batch.can_add(product):
            batch.forget_published()
        at_sums, is_published = batch.place_sums(product)
        for i, item in enumerate(product.start):
            if not is_published:
                self.store(self.read(item, _B32), self.lane_words(at_sums + i))
        places = []
        for operand in product.operands:
            word, is_known = batch.place_operand(operand)
            places.append(word)
            for i, value in enumerate([] if is_known else self._words_of(operand)):
                self.store(value, self.lane_words(word + i))
        batch.add(index, product, at_sums, places)
        if self._is_guarded:
            self.finish_products()

    def load_matrices(
        self, index: int, variant: int, to: Sequence[Operand], where: IrValue
    ) -> None:
        """Publish an address of ldmatrix, as `multiply` publishes operands."""
        batch = self._products
        if not batch.has_room(to):
            self.finish_products()
            batch.forget_published()
        word = batch.add_load(index, variant, to)
        for i, half in enumerate(self.halves(where)):
            self.store(half, self.lane_words(word + i))
        if self._is_guarded:
            self.finish_products()

    def _words_of(self, operand: Sequence[Operand]) -> list[IrValue]:
        """Return an operand of a product as words: registers, a descriptor, or a predicate."""
        first = operand[0]
        type_ = self.kernel.registers[first.name] if isinstance(first, Register) else _B32
        if isinstance(first, Not) or type_ is PREDICATE:
            return [self.resize(self.read(first, PREDICATE), "i32")]
        if len(operand) == 1 and type_.bytes == 8:
            return self.halves(self.read(first, TYPES["b64"]))
        return [self.read(item, _B32) for item in operand]

    def finish_products(self) -> None:
        """Let the runtime execute the products and loads that were asked for, and read what they
        give."""
        batch = self._products
        if not batch.products:
            return
        index = batch.products[0][0]
        numbers = [n for product in batch.products for n in product] + [-1] * len(batch.products[0])
        self.declarations.add(
            f"@products.{index} = private constant [{len(numbers)} x i32] "
            f"[{', '.join(f'i32 {n}' for n in numbers)}]"
        )
        argument = IrValue(f"ptrtoint (ptr @products.{index} to i64)", "i64")
        sums, loaded = batch.finish()
        self.suspend(
            index,
            State.COLLECTIVE,
            mask=-1,
            collective=int(Collective.PRODUCTS),
            argument=argument,
        )
        for word, items in sums:
            for i, item in enumerate(items):
                self.write(item, self.load("i32", self.lane_words(word + i)))
        for name, word in loaded.items():
            self.write(Register(name), self.load("i32", self.lane_words(word)))
        batch.note_published(sums)

    def stop_unless(self, ok: IrValue, fault: Cause, index: int) -> None:
        """End the thread with a fault unless this holds."""
        good, bad = self.new_label(), self.new_label()
        self.branch(ok, good, bad, likely=True)
        self.continue_at(bad)
        self._fault(fault, MemoryAccess(index, 0, Access.READ), constant("i64", 0))
        self.continue_at(good)

    def leave_unless(self, ok: IrValue) -> None:
        """End the thread unless this holds. If it does not, the runtime has recorded a fault."""
        good = self.new_label()
        self.branch(ok, good, self.faulty, likely=True)
        self.continue_at(good)

    def tell(self, name: str, *arguments: IrValue | int) -> None:
        """Call a runtime function for this thread; integers are passed as i64."""
        self.call_void(name, *self._given(arguments))

    def must(self, name: str, *arguments: IrValue | int) -> None:
        """Call a runtime function, and end the thread if it returns 0: it has recorded a fault."""
        self.leave_unless(self.compare("ne", self.ask("i64", name, *arguments), 0))

    def ask(self, type_: str, name: str, *arguments: IrValue | int) -> IrValue:
        """Call a runtime function that returns a value."""
        return self.call(type_, name, *self._given(arguments))

    def _given(self, arguments: Sequence[IrValue | int]) -> list[IrValue]:
        numbers = (x if isinstance(x, IrValue) else constant("i64", x) for x in arguments)
        return [IrValue("%c", "ptr"), self.thread_index(), *numbers]

    # -- memory

    def pointer(self, space: str, address: Address, access: MemoryAccess) -> IrValue:
        """Return a host pointer to the bytes at a device address, which is checked."""
        where = self.address_value(address)
        if space == "shared":
            access = replace(access, kind=access.kind | Access.OWN)
        if self.mode is Mode.WATCH:
            return self._told("rt_watched_access", space, where, access)
        if space in ("shared", "local"):
            memory = self.kernel.shared if space == "shared" else self.kernel.local
            units = constant("i64", memory.size >> access.log2)
            generic = self.op("add", where, self.window_base(space))
            offset = self.op("sub", where, self.shared_address()) if space == "shared" else where
            self._check(offset, generic, units, access)
            start = self.field(space, "ptr")
            if space == "local":
                start = self.offset(start, self._local_row())
            return self.offset(start, offset)
        window = self._window_of(space, address)
        is_input = window is not None and window >= Window.BUFFER
        is_input = is_input and window not in self.kernel.writable_windows
        if window is None or (is_input and access.kind & Access.WRITE):
            pointer = self._told("rt_checked_access", space, where, access)
            self.leave_unless(self.compare("ne", pointer, IrValue("null", "ptr")))
            return pointer
        offset = self.op("sub", where, layout.base_of(window))
        span = self.offset(self.field("windows", "ptr"), window * layout.SPAN_BYTES)
        size = self.load("i64", self.offset(span, 8), ", !invariant.load !0")
        self._check(offset, where, self.op("lshr", size, access.log2), access)
        return self.offset(self.load("ptr", span, ", !invariant.load !0"), offset)

    @functools.cached_property
    def _selections(self) -> dict[int, list[Selection]]:
        return selections(self.kernel.body) if self.mode is Mode.WATCH else {}

    @functools.cached_property
    def _selected(self) -> dict[tuple[int, int], MemoryAccess | None]:
        """The elements of loads that are checked where they are selected."""
        return {(x.load, x.element): None for each in self._selections.values() for x in each}

    def is_checked_later(
        self, space: str, address: Address, element: int, access: MemoryAccess
    ) -> bool:
        """Return whether an element of a load is to be checked only where its value is selected.
        If so, remember its address until then."""
        key = access.index, element
        if key not in self._selected:
            return False
        own = Access.OWN if space == "shared" else Access.READ
        self._selected[key] = replace(access, kind=access.kind | own)
        where = self.op("add", self.address_value(address), self.window_base(space))
        where = self.op("add", where, element * access.n)
        self.store(where, self._place_of(key))
        return True

    def _place_of(self, key: tuple[int, int]) -> IrValue:
        """Return the variable for the address of a loaded element; zero if it was checked."""
        place = f"%r.selected.{key[0]}.{key[1]}"
        self._types[place] = "i64"
        return IrValue(place, "ptr")

    def _check_selected(self, selection: Selection, item: Instruction) -> None:
        key = selection.load, selection.element
        access = self._selected[key]
        assert access is not None
        predicate = self.read(item.operands[-1], PREDICATE)
        where = self.load("i64", self._place_of(key))
        is_used = predicate if selection.wanted else self.invert(predicate)
        check, after = self.new_label(), self.new_label()
        self.branch(self.op("and", is_used, self.compare("ne", where, 0)), check, after)
        self.continue_at(check)
        self.tell("rt_watched_use", access.index, where, access.n, int(access.kind))
        self.store(constant("i64", 0), self._place_of(key))
        self.jump(after)
        self.continue_at(after)

    def _local_row(self) -> IrValue:
        """Return the offset at which this thread's local memory begins."""
        return self.op("mul", self.thread_index(), self.kernel.local_bytes)

    @functools.cached_property
    def _windows(self) -> dict[str, int]:
        return pointer_windows(self.kernel)

    def _window_of(self, space: str, address: Address) -> int | None:
        if isinstance(address.base, Register) and space in ("global", "const", ""):
            window = self._windows.get(address.base.name)
            is_own = window != Window.SHARED or self.kernel.cluster_blocks == 1
            return window if is_own else None
        if isinstance(address.base, Symbol) and address.base.name in self.kernel.module.variables:
            return Window.MODULE
        return None

    def _check(
        self, offset: IrValue, address: IrValue, units: IrValue, access: MemoryAccess
    ) -> None:
        """Rotating the offset by log2(n) moves misaligned low bits to the top, so that one
        comparison with the array's size in units of n bytes finds both faults."""
        turned = offset
        if access.n > 1:
            turned = self.intrinsic("fshr", offset, offset, constant("i64", access.log2))
        good, bad = self.new_label(), self.new_label()
        self.branch(self.compare("ult", turned, units), good, bad, likely=True)
        self.continue_at(bad)
        self._fault(Cause.MEMORY, access, address)
        self.continue_at(good)

    def _fault(self, fault: Cause, access: MemoryAccess, address: IrValue) -> None:
        self.tell("rt_fault", int(fault), access.index, address, access.n, int(access.kind))
        self.jump("exit")

    def _told(self, name: str, space: str, where: IrValue, access: MemoryAccess) -> IrValue:
        """Return the pointer that the runtime returns for an access."""
        generic = self.op("add", where, self.window_base(space))
        return self.ask("ptr", name, access.index, generic, access.n, int(access.kind))

    def count_matrices(self, index: int, row: IrValue, matrices: int) -> None:
        """Count a move of 8x8 matrices. row: the address that this lane supplies."""
        if self.mode is Mode.WATCH:
            self._trace(index, 1, row, matrices << 8 | Event.MATRIX)

    def _trace(self, index: int, phase: int, address: IrValue | int, kind: int) -> None:
        """phase: which of the instruction's events comes first."""
        given = address if isinstance(address, IrValue) else constant("i64", address)
        event = [constant("i64", index << 2 | phase), given, constant("i64", kind)]
        self.tell("rt_trace", *event)

    def parameter(self, address: Address, n: int) -> IrValue:
        """Return a host pointer into the kernel's parameters or a call's temporaries."""
        if not isinstance(address.base, Symbol):
            raise CannotTranslate("a parameter that is indexed at run time")
        name, offset = address.base.name, address.offset
        if name in self._temporaries:
            if not 0 <= offset <= max(8, self.kernel.temporaries[name]) - n:
                raise CannotTranslate("an access outside a parameter")
            return self.offset(IrValue(self._temporaries[name], "ptr"), offset)
        place = self.kernel.parameters.variables.get(name)
        if place is None or not 0 <= offset <= place.size - n:
            raise CannotTranslate("an access outside the kernel's parameters")
        return self.offset(self.field("parameters", "ptr"), place.offset + offset)

    def window_base(self, space: str) -> int:
        bases = {"shared": Window.SHARED, "shared::cluster": Window.SHARED, "local": Window.LOCAL}
        return bases[space].base if space in bases else 0

    def shared_address(self) -> IrValue:
        """Return the address of the block's shared memory in that of its cluster."""
        if self.kernel.cluster_blocks == 1:
            return constant("i64", 0)
        return self.field("shared_address", "i64")

    def fence(self, name: str, *arguments: int) -> None:
        """Report a fence to the checks by calling this function of the runtime."""
        if self.mode is Mode.WATCH:
            self.tell(name, *arguments)

    def symbol(self, symbol: Symbol) -> IrValue:
        kernel = self.kernel
        if symbol.name in kernel.shared.variables:
            place = kernel.shared.variables[symbol.name]
            return self.op("add", self.shared_address(), place.offset + symbol.offset)
        for memory, base in ((kernel.local, 0), (kernel.module, Window.MODULE.base)):
            if symbol.name in memory.variables:
                place = memory.variables[symbol.name]
                return constant("i64", base + place.offset + symbol.offset)
        raise CannotTranslate(f"this device does not know the symbol {symbol.name}")

    # -- special registers

    def special(self, name: str) -> IrValue:
        base, _, axis = name.partition(".")
        if axis in ("x", "y", "z") and base in _POSITIONS:
            return self._position(_POSITIONS[base], axis)
        if name in ("laneid", "warpid"):
            return IrValue(f"%{name[:4]}", "i32")
        if name in ("clock", "clock_hi"):
            shift = 32 if name == "clock_hi" else 0
            return self.resize(self.op("lshr", self._cycles(), shift), "i32")
        if name == "clock64":
            return self._cycles()
        if name == "globaltimer":
            return self.op("add", self._cycles(), _SINCE_1970)
        if name == "smid":
            blocks = self.op("mul", self.field("y", "i64"), self.field("grid_x", "i64"))
            block = self.op("add", blocks, self.field("x", "i64"))
            return self.resize(self.op("urem", block, MULTIPROCESSORS), "i32")
        if name.startswith("lanemask_"):
            return self._lane_mask(name.removeprefix("lanemask_"))
        if name == "gridid":
            return self.field("launch", "i64")
        if name == "cluster_ctarank":
            return self.resize(self.field("rank", "i64"), "i32")
        if name == "is_explicit_cluster":
            return constant("i1", self.kernel.is_explicit_cluster)
        if name in self._constants():
            return constant("i32", self._constants()[name])
        if name.startswith("envreg"):  # where a cooperative launch would put its barrier
            return constant("i32", 0)
        raise CannotTranslate(f"this device does not know the special register %{name}")

    def _constants(self) -> dict[str, int]:
        x, y, z = self.block
        shared = self.kernel.shared
        dynamic = shared.variables.get(DYNAMIC)
        return {
            "nsmid": MULTIPROCESSORS,
            "nwarpid": -(-x * y * z // layout.LANES),
            "cluster_nctarank": self.kernel.cluster_blocks,
            "total_smem_size": shared.size,
            "dynamic_smem_size": dynamic.size if dynamic else 0,
        }

    def _position(self, kind: str, axis: str) -> IrValue:
        if kind == "thread":
            return IrValue(f"%tid.{axis}", "i32")
        if kind == "threads":
            return constant("i32", self.block["xyz".index(axis)])
        blocks = self.kernel.cluster["xyz".index(axis)]
        if kind == "blocks of the cluster":
            return constant("i32", blocks)
        place = self.field(f"grid_{axis}" if kind in ("grid", "clusters") else axis, "i64")
        if kind in ("cluster", "clusters"):
            place = self.op("udiv", place, blocks)
        elif kind == "block of the cluster":
            place = self.op("urem", place, blocks)
        return self.resize(place, "i32")

    def _cycles(self) -> IrValue:
        self.declarations.add("declare i64 @llvm.readcyclecounter()")
        return self.value("i64", "call i64 @llvm.readcyclecounter()")

    def _lane_mask(self, which: str) -> IrValue:
        one = self.op("shl", constant("i32", 1), IrValue("%lane", "i32"))
        below = self.op("sub", one, 1)
        until = self.op("or", below, one)
        masks = {"eq": lambda: one, "lt": lambda: below, "le": lambda: until}
        masks |= {"ge": lambda: self.invert(below), "gt": lambda: self.invert(until)}
        if which not in masks:
            raise CannotTranslate(
                f"this device does not know the special register %lanemask_{which}"
            )
        return masks[which]()

    # -- control

    def label(self, index: int, item: Label) -> None:
        self.finish_products()
        super().label(index, item)
        self._since_label = 0
        self._products.forget_published()
        self.count_block(index)

    def statement(self, index: int, item: Instruction) -> None:
        self._since_label += 1
        if self.mode is Mode.WATCH and self._since_label > LONG_BLOCK:
            self._since_label = 0
            self.poll(index)
        if self._products.products and not self._products.allows(item):
            self.finish_products()
        self._is_guarded = item.guard is not None
        super().statement(index, item)
        for selection in self._selections.get(index, ()):
            self._check_selected(selection, item)
        if self._is_guarded:
            self._products.forget_published()

    def poll(self, index: int) -> None:
        """Stop if the time limit is reached."""
        asked = self.value("i8", f"load volatile i8, {self.field('stop', 'ptr')}")
        self.stop_unless(self.compare("eq", asked, 0), Cause.TIME_LIMIT, index)

    def count_branch(self, index: int, taken: IrValue) -> None:
        """Count before a conditional jump whether the lanes of the warp diverge."""
        if self.mode is Mode.WATCH:
            self._trace(index, 1, self.resize(taken, "i64"), Event.BRANCH)

    def count_block(self, index: int) -> None:
        """Count at the beginning of a basic block which lanes run it."""
        if self.mode is Mode.WATCH:
            self._trace(index, 2, 0, Event.BLOCK)

    def lower(self, index: int, item: Instruction) -> None:
        if item.opcode.split(".")[0] == "call":
            self.call_function(index, item)
        else:
            self._lowerings.lower(self, item, index)

    def call_function(self, index: int, item: Instruction) -> None:
        """Call one of the two functions that CUDA provides to kernels."""
        name, results, arguments = call_parts(item)
        if name == "vprintf":
            if len(arguments) != 2:
                raise CannotTranslate("printf needs a format and its arguments")
            words = [self.load("i64", self.parameter(_address(x), 8)) for x in arguments]
            self.tell("rt_print", index, *words)
            if results:
                self.store(constant("i32", 0), self.parameter(_address(results[0]), 4))
        elif name == "__assertfail":
            self.stop_unless(FALSE, Cause.TRAP, index)
        else:
            raise CannotTranslate(f"a call of {name}")


def _address(name: str) -> Address:
    return Address(Symbol(name), 0)


_POSITIONS = {
    "tid": "thread",
    "ntid": "threads",
    "ctaid": "block",
    "nctaid": "grid",
    "clusterid": "cluster",
    "nclusterid": "clusters",
    "cluster_ctaid": "block of the cluster",
    "cluster_nctaid": "blocks of the cluster",
}

CORO = """
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare void @llvm.coro.end(ptr, i1, token)
declare void @llvm.trap()
"""

METADATA = """
!0 = !{}
!1 = !{!"branch_weights", i32 100000, i32 1}
"""
