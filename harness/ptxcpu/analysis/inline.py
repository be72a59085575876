"""Extraction of one kernel from a PTX module, with calls inlined and addresses for all
variables."""

from dataclasses import dataclass, field, replace
from itertools import chain
from math import prod

from harness.ptxcpu.analysis.compare_and_swap import relax_loads_before_swaps
from harness.ptxcpu.arguments import ParameterKind, window_of_buffer
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.effects import read_by
from harness.ptxcpu.ptx.names import base_name
from harness.ptxcpu.ptx.syntax import (
    Address,
    Function,
    Group,
    Instruction,
    Integer,
    Label,
    Not,
    Operand,
    Pair,
    Program,
    Register,
    Sink,
    Symbol,
    Variable,
    Vector,
    symbols,
)
from harness.ptxcpu.ptx.types import TYPES, Type
from harness.ptxcpu.runtime.layout import MAX_CLUSTER, Window

MAX_INSTRUCTIONS = 300_000
"""The limit for a kernel with its calls inlined, which may be exponentially many. LLVM needs about
0.3 ms and 8 KB for each instruction."""
MAX_CALL_DEPTH = 32
MAX_MODULE_BYTES = 2 << 30  # bytes of __device__ and __constant__ variables
MAX_LOCAL_BYTES = 64 << 10  # bytes of local arrays per thread
LINE = 128  # bytes of a cache line: where drivers put what is larger (seen on an H100)
GAP = 128  # bytes between variables, so that running over one's end is seen

DYNAMIC = "dynamic shared memory"
"""Its name among the variables."""

_CLUSTER_DIRECTIVES = {"reqnctapercluster", "explicitcluster"}


@dataclass(frozen=True)
class Placed:
    """The position of a variable in its memory."""

    name: str
    offset: int
    size: int


@dataclass
class Memory:
    """The variables of one state space, one after the other."""

    gap: int = 0
    size: int = 0
    variables: dict[str, Placed] = field(default_factory=dict)

    def add(self, name: str, size: int, align: int) -> Placed:
        if name not in self.variables:
            start = -(-(self.size + (self.gap if self.variables else 0)) // align) * align
            self.variables[name] = Placed(name, start, size)
            self.size = start + size
        return self.variables[name]

    def flags(self, inside: int, outside: int) -> bytes:
        """One byte for each byte of the memory, which says whether it belongs to a variable."""
        marks = bytearray([outside]) * self.size
        for place in self.variables.values():
            marks[place.offset : place.offset + place.size] = bytes([inside]) * place.size
        return bytes(marks)

    def nearest(self, offset: int) -> Placed | None:
        """Return the variable at `offset`, or the last one before it."""
        before = [v for v in self.variables.values() if v.offset <= max(offset, 0)]
        return max(before, key=lambda v: v.offset, default=None)


@dataclass(eq=False)  # compared by identity, so that caches can have it as a key
class InlinedKernel:
    """The data of one kernel that the translator needs."""

    name: str
    parameters: Memory
    shared: Memory
    local: Memory
    module: Memory
    shared_bytes: int = 0
    """The bytes of shared memory of a block, without the gaps of `shared`."""
    cluster: tuple[int, int, int] = (1, 1, 1)
    is_explicit_cluster: bool = False
    kinds: tuple[ParameterKind, ...] = ()
    """The kind of each parameter's argument; later parameters have unknown kinds."""
    temporaries: dict[str, int] = field(default_factory=dict)
    registers: dict[str, Type] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    body: list[Instruction | Label] = field(default_factory=list)

    @property
    def cluster_blocks(self) -> int:
        return prod(self.cluster)

    @property
    def local_bytes(self) -> int:
        """The bytes of one thread's local memory, rounded up to align that of the next thread."""
        return max(16, -(-self.local.size // 16) * 16)

    @property
    def buffer_windows(self) -> dict[str, int]:
        """The window of the buffer that each parameter points to."""
        buffers = [
            name
            for name, kind in zip(self.parameters.variables, self.kinds, strict=False)
            if kind is not ParameterKind.NUMBER
        ]
        return {name: window_of_buffer(index) for index, name in enumerate(buffers)}

    @property
    def writable_windows(self) -> frozenset[int]:
        """The windows of the buffers that the kernel may write to."""
        kinds = dict(zip(self.parameters.variables, self.kinds, strict=False))
        return frozenset(
            window
            for name, window in self.buffer_windows.items()
            if kinds[name] is ParameterKind.WRITABLE
        )

    def instruction(self, index: int) -> Instruction | None:
        item = self.body[index] if 0 <= index < len(self.body) else None
        return item if isinstance(item, Instruction) else None


def module_memory(program: Program) -> tuple[Memory, dict[int, bytes]]:
    """Return the position of every `__device__` and `__constant__` variable, and their initial
    bytes by offset; all other bytes are zero."""
    memory, initial = Memory(GAP), {}
    functions = function_addresses(program)
    for variable in program.variables.values():
        if variable.space not in ("global", "const"):
            continue
        if variable.extern:
            raise CannotTranslate(f"{variable.name} is declared but not defined")
        align = LINE if variable.size >= LINE else 16
        place = memory.add(variable.name, variable.size, max(align, variable.align))
        if memory.size > MAX_MODULE_BYTES:
            raise CannotTranslate(
                f"the kernel's __device__ variables take {memory.size} bytes; "
                f"this device allows {MAX_MODULE_BYTES}"
            )
        if variable.image:
            initial[place.offset] = variable.image[: variable.size]
    for place in memory.variables.values():
        variable = program.variables[place.name]
        for at, name, distance in variable.pointees:
            if name in memory.variables:
                address = Window.MODULE.base + memory.variables[name].offset + distance
            elif name in functions:
                address = functions[name]
            else:
                raise CannotTranslate(f"{variable.name} begins with the address of {name}")
            if variable.type.bytes != 8:
                raise CannotTranslate(f"{variable.name} begins with a part of an address")
            image = initial[place.offset]
            initial[place.offset] = image[:at] + address.to_bytes(8, "little") + image[at + 8 :]
    return memory, initial


def function_addresses(program: Program) -> dict[str, int]:
    """Return an address for every device function. There is no array at it, so only calls can use
    it."""
    names = [*program.functions, *program.declared]
    base = Window.NONE.base
    return {name: base + 16 * number for number, name in enumerate(dict.fromkeys(names), 1)}


def _pointed_at(program: Program) -> list[Function]:
    """Return the device functions whose addresses the program takes, in the order of the
    program."""
    names = {p.name for variable in program.variables.values() for p in variable.pointees}
    for function in program.functions.values():
        for item in function.body:
            if isinstance(item, Instruction) and not _is_call(item):
                names.update(chain.from_iterable(map(symbols, item.operands)))
    return [each for each in program.functions.values() if each.name in names]


def _is_call(item: Instruction) -> bool:
    return item.opcode.split(".")[0] == "call"


def inline(
    program: Program,
    entry: str,
    dynamic_shared: int,
    gaps: bool = False,
    kinds: tuple[ParameterKind, ...] = (),
) -> InlinedKernel:
    """Inline everything that `entry` calls and place its variables.

    kinds: what each parameter is given.
    gaps: leave GAP bytes between shared variables, so that an overflow is not hidden.
    """
    function = program.functions.get(entry)
    if function is None or not function.is_entry:
        raise CannotTranslate(f"the PTX has no kernel {entry!r}")
    if "blocksareclusters" in function.directives:
        raise CannotTranslate("a grid that is counted in clusters (.blocksareclusters)")
    if not 1 <= prod(function.cluster) <= MAX_CLUSTER:
        raise CannotTranslate(f"clusters of other than 1 to {MAX_CLUSTER} blocks")
    kernel = _Inliner(program, function, dynamic_shared, gaps).kernel
    return replace(kernel, kinds=kinds)


class _Inliner:
    def __init__(self, program: Program, entry: Function, dynamic: int, gaps: bool) -> None:
        self.program = program
        self.kernel = InlinedKernel(
            entry.name,
            Memory(),
            Memory(),
            Memory(16),
            module_memory(program)[0],
            cluster=entry.cluster,
            is_explicit_cluster=not _CLUSTER_DIRECTIVES.isdisjoint(entry.directives),
        )
        for parameter in entry.parameters:
            self.kernel.parameters.add(parameter.name, parameter.size, parameter.align)
        self.static: dict[str, Variable] = {}
        self.dynamic: list[Variable] = []
        self.shared: dict[tuple[str, str], str] = {}
        """The names in the kernel of the shared variables of functions."""
        self.addresses = function_addresses(program)
        self.pointed_at = _pointed_at(program)
        self.called: list[str] = []
        """The functions that are being inlined, each by the one before."""
        for variable in program.variables.values():
            if variable.space == "shared":
                self.place_shared(variable)
        self.copy(entry, "", {}, 0)
        self.lay_out_shared(dynamic, GAP if gaps else 0)
        self.kernel.body = relax_loads_before_swaps(_without_unread_elements(self.kernel.body))
        if self.kernel.local.size > MAX_LOCAL_BYTES:
            raise CannotTranslate(
                f"the kernel's local arrays take {self.kernel.local.size} bytes per thread; "
                f"this device allows {MAX_LOCAL_BYTES}"
            )

    def place_shared(self, variable: Variable) -> None:
        if variable.extern:
            self.dynamic.append(variable)
        else:
            self.static[variable.name] = variable

    def place_shared_of(self, function: Function, variable: Variable) -> str:
        """Return the variable's name, made unique if another function has a variable of that
        name."""
        owner = (function.name, variable.name)
        if owner not in self.shared:
            taken = variable.name in self.shared.values()
            name = f"{variable.name} of {function.name}" if taken else variable.name
            self.place_shared(replace(variable, name=name))
            self.shared[owner] = name
        return self.shared[owner]

    def lay_out_shared(self, dynamic_size: int, gap: int) -> None:
        """Lay out shared memory as ptxas does: the widest alignment first, dynamic shared memory
        last, with one address for all of its names. Gaps are multiples of a cache line, since the
        counts of banks and sectors depend on the position in a line."""
        kernel, shared = self.kernel, self.kernel.shared
        wanted = [
            (each.name, each.size, each.align)
            for each in sorted(self.static.values(), key=lambda variable: -variable.align)
        ]
        if self.dynamic or dynamic_size:
            align = max((each.align for each in self.dynamic), default=16)
            wanted.append((DYNAMIC, dynamic_size, max(16, align)))
        for name, size, align in wanted:
            offset = -(-kernel.shared_bytes // align) * align
            kernel.shared_bytes = offset + size
            before = shared.size + gap if shared.variables else 0
            offset += max(0, -(-(before - offset) // LINE) * LINE) if gap else 0
            shared.variables[name] = Placed(name, offset, size)
            shared.size = offset + size
        for variable in self.dynamic:
            place = shared.variables[DYNAMIC]
            shared.variables[variable.name] = Placed(variable.name, place.offset, place.size)

    def copy(self, function: Function, tag: str, alias: dict[str, str], depth: int) -> None:
        """Append the body of `function`, its names made unique by `tag`."""
        kernel, names = self.kernel, dict(alias)
        for name, variable in function.variables.items():
            if variable.space == "shared":
                names[name] = self.place_shared_of(function, variable)
            elif variable.space in ("local", "param"):
                names[name] = name + tag
                if variable.space == "local":
                    kernel.local.add(name + tag, variable.size, max(16, variable.align))
                else:
                    kernel.temporaries[name + tag] = variable.size
            else:
                raise CannotTranslate(f"a .{variable.space} variable inside a function")
        for item in function.body:
            if isinstance(item, Label):
                names[item.name] = item.name + tag
        for name, targets in function.branch_targets.items():
            names[name] = name + tag
            kernel.branch_targets[name + tag] = tuple(names.get(x, x) for x in targets)
        for name, kind in function.registers.items():
            names[name] = name + tag
            kernel.registers[name + tag] = kind
        end = f"end of {function.name}{tag}"
        for item in function.body:
            self.append(item, names, tag, end, depth)
        if depth:
            kernel.body.append(Label(end))

    def append(
        self, item: Instruction | Label, names: dict[str, str], tag: str, end: str, depth: int
    ) -> None:
        body = self.kernel.body
        if len(body) > MAX_INSTRUCTIONS:
            raise CannotTranslate(
                "with its calls inlined, the kernel has more than "
                f"{MAX_INSTRUCTIONS // 1000} 000 PTX instructions"
            )
        if isinstance(item, Label):
            body.append(Label(names[item.name]))
            return
        guard = item.guard and renamed(item.guard, names)
        assert guard is None or isinstance(guard, Register | Not)
        operands = tuple(renamed(x, names) for x in item.operands)
        if item.opcode.startswith("ret") and depth:
            self.branch(end, guard, item)
        elif _is_call(item):
            self.call(replace(item, operands=operands, guard=guard), tag, depth)
        else:
            operands = tuple(
                Integer(self.addresses[x.name])
                if isinstance(x, Symbol) and x.name in self.addresses
                else x
                for x in operands
            )
            body.append(replace(item, operands=operands, guard=guard))

    def call(self, item: Instruction, tag: str, depth: int) -> None:
        """Inline a call: the callee's parameters become the caller's temporaries."""
        pointer = next((x for x in item.operands if isinstance(x, Register)), None)
        try:
            if pointer is None and call_parts(item)[0] not in self.program.functions:
                self.kernel.body.append(item)  # printf and assert: the translator knows them
                return
            inner = f"{tag}.{len(self.kernel.body)}"
            if item.guard is not None:
                away = item.guard.register if isinstance(item.guard, Not) else Not(item.guard)
                self.branch(f"after{inner}", away, item)
            if pointer is None:
                self.copy_callee(item, inner, depth)
            else:
                self.call_through(pointer, item, inner, depth)
            if item.guard is not None:
                self.kernel.body.append(Label(f"after{inner}"))
        except CannotTranslate as refusal:
            raise refusal.at(item.text, item.line) from None

    def copy_callee(self, item: Instruction, inner: str, depth: int) -> None:
        name, results, arguments = call_parts(item)
        callee = self.program.functions[name]
        given = [*results, *arguments]
        formal = [p.name for p in (*callee.results, *callee.parameters)]
        if len(given) != len(formal):
            raise CannotTranslate(f"a call of {base_name(name)} with {len(given)} arguments")
        if depth >= MAX_CALL_DEPTH or name in self.called:
            shown = base_name(name)
            raise CannotTranslate(f"recursion: {shown} calls itself, or calls nest too deep")
        self.called.append(name)
        self.copy(callee, inner, dict(zip(formal, given, strict=True)), depth + 1)
        self.called.pop()

    def call_through(self, pointer: Register, item: Instruction, inner: str, depth: int) -> None:
        """Inline every function that the pointer may point at, each behind a comparison of its
        address with the pointer. Any other pointer ends the kernel, as on a GPU."""
        *operands, prototype = item.operands
        if not isinstance(prototype, Symbol):
            raise CannotTranslate("a call through a pointer without its prototype")
        sizes = [self.kernel.temporaries.get(x) for each in operands for x in symbols(each)]
        end, is_other = f"end of call{inner}", Register(f"other function{inner}")
        self.kernel.registers[is_other.name] = TYPES["pred"]
        for callee in self.pointed_at:
            if [x.size for x in (*callee.results, *callee.parameters)] != sizes:
                continue
            place, address = f"{inner}.{callee.name}", Integer(self.addresses[callee.name])
            self.add(item, "setp.ne.u64", (is_other, pointer, address))
            self.branch(f"not{place}", is_other, item)
            named = tuple(Symbol(callee.name) if x is pointer else x for x in operands)
            direct = Instruction("call", named, None, item.line, item.text)
            self.copy_callee(direct, place, depth)
            self.branch(end, None, item)
            self.kernel.body.append(Label(f"not{place}"))
        self.add(item, "trap", ())
        self.kernel.body.append(Label(end))

    def branch(self, label: str, guard: Register | Not | None, item: Instruction) -> None:
        self.add(item, "bra", (Symbol(label),), guard)

    def add(
        self,
        item: Instruction,
        opcode: str,
        operands: tuple[Operand, ...],
        guard: Register | Not | None = None,
    ) -> None:
        """Append an instruction in place of another one."""
        added = replace(item, opcode=opcode, operands=operands, guard=guard)
        self.kernel.body.append(added)


def _without_unread_elements(body: list[Instruction | Label]) -> list[Instruction | Label]:
    """Return the body with sinks for the elements of vector loads that nothing reads: the compiler
    may load neighbours of what the source reads, such as the padding of a row."""
    instructions = [item for item in body if isinstance(item, Instruction)]
    read: set[str] = set().union(*map(read_by, instructions))
    return [
        replace(item, operands=(_read_elements(item.operands[0], read), *item.operands[1:]))
        if isinstance(item, Instruction) and item.opcode.startswith("ld.")
        else item
        for item in body
    ]


def _read_elements(operand: Operand, read: set[str]) -> Operand:
    if not isinstance(operand, Vector):
        return operand
    items = (x if isinstance(x, Register) and x.name in read else Sink() for x in operand.items)
    used = Vector(tuple(items))
    return operand if used.items == (Sink(),) * len(used.items) else used


def call_parts(item: Instruction) -> tuple[str, list[str], list[str]]:
    """Return the function called, and the names of the .param variables of results and
    arguments."""
    operands = list(item.operands)
    results = operands.pop(0) if operands and isinstance(operands[0], Group) else Group(())
    target = operands.pop(0) if operands else None
    arguments = operands.pop(0) if operands else Group(())
    if not isinstance(target, Symbol) or not isinstance(arguments, Group) or operands:
        raise CannotTranslate("a call of something that is no function")

    def names(group: Operand) -> list[str]:
        assert isinstance(group, Group)
        found = [x.name for x in group.items if isinstance(x, Symbol)]
        if len(found) != len(group.items):
            raise CannotTranslate("a call with arguments in registers")
        return found

    return target.name, names(results), names(arguments)


def renamed(operand: Operand, names: dict[str, str]) -> Operand:
    if isinstance(operand, Register):
        return Register(names.get(operand.name, operand.name))
    if isinstance(operand, Symbol):
        return Symbol(names.get(operand.name, operand.name), operand.offset)
    if isinstance(operand, Not):
        return Not(Register(names.get(operand.register.name, operand.register.name)))
    if isinstance(operand, Address):
        base = renamed(operand.base, names)
        return Address(base, operand.offset)  # type: ignore[arg-type]
    if isinstance(operand, Pair):
        return Pair(renamed(operand.first, names), renamed(operand.second, names))
    if isinstance(operand, Vector | Group):
        return type(operand)(tuple(renamed(x, names) for x in operand.items))
    return operand
