"""Parses a whole PTX text. Anything that this grammar does not know is an error that names it."""

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from harness.ptxcpu.ptx.declarations import Declarations
from harness.ptxcpu.ptx.errors import PtxError
from harness.ptxcpu.ptx.lexer import IDENTIFIER, number
from harness.ptxcpu.ptx.stream import SPECIAL
from harness.ptxcpu.ptx.syntax import (
    Address,
    Coordinates,
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
    Special,
    Symbol,
    Vector,
)
from harness.ptxcpu.ptx.types import Type

MAX_TEXT = 16 << 20  # bytes of PTX; NVRTC gives 3 KB for a tile kernel
MAX_REGISTERS = 200_000  # of one function
MAX_SCOPE_DEPTH = 64

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_MODULE_SPACES = {".shared", ".global", ".const"}
_FUNCTION_SPACES = {".local", ".shared", ".global", ".const", ".param"}
_DIRECTIVES = {
    *(".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".noreturn"),
    *(".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"),
}
_PRAGMAS = re.compile(r'"(nounroll|enable_smem_spilling|(used_bytes_mask|frequency) [0-9]+)"')
_NUMBERED = re.compile(r"(.*[^0-9])([0-9]+)")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")
"""The registers of a range: for the range `%r`, ptxas reads `%r01` and `%r4294967297` as `%r1`."""
_OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*")


def parse(text: str) -> Program:
    """Parse a whole PTX module. Raises PtxError for anything that the grammar does not know."""
    if len(text) > MAX_TEXT:
        raise PtxError(f"the PTX has {len(text)} bytes; at most {MAX_TEXT} are read")
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise PtxError("the PTX nests too deep") from None


@dataclass(frozen=True)
class _Scope:
    """The declarations of one `{ }`: the unique name of each name. The outermost scope keeps
    names."""

    suffix: str
    unique: dict[str, str] = field(default_factory=dict)
    labels: set[str] = field(default_factory=set)


class _Parser(Declarations):
    """Parses functions and instructions."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.opened = 0
        self.scopes: list[_Scope] = []
        self.visible: dict[str, str] = {}
        """The scopes around the current position, which give each name its meaning."""
        self.inside: set[str] = set()
        """All names that functions declare."""
        self.ranges: set[str] = set()
        """The prefixes of register ranges such as `%r<9>` in the current function."""
        self.registers_by_name: dict[str, Register] = {}
        """The registers of the current function by their unique names."""
        self.opcodes: set[str] = set()
        """The opcodes that were found to be well-formed."""

    # -- module level

    def parse(self) -> Program:
        self.header()
        while self.next:
            self.module_statement()
        for name in self.inside & {
            *self.program.variables,
            *self.program.functions,
            *self.program.declared,
        }:
            self.fail(f"{name} is the name of two things")
        return self.program

    def header(self) -> None:
        """`.version`, `.target` and `.address_size`: once, before everything else."""
        start = self.at
        self.expect(".version")
        self.program.version = self.take()
        if not re.fullmatch(r"[0-9]+\.[0-9]+", self.program.version):
            self.fail(f"unknown PTX version {self.program.version!r}")
        self.finish(start)
        start = self.at
        self.expect(".target")
        target = [self.take()]
        while self.accept(","):
            target.append(self.take())
        for word in target:
            if not re.fullmatch(r"[a-z][a-z0-9_]*", word):
                self.fail(f"unknown PTX target {word!r}")
        self.program.target = tuple(target)
        self.finish(start)
        start = self.at
        self.expect(".address_size")
        self.expect("64")
        self.finish(start)

    def module_statement(self) -> None:
        start, linkage = self.at, ""
        if self.next in _LINKAGE:
            linkage = self.take()
        word = self.next
        if word in (".entry", ".func"):
            self.function(start)
        elif word in _MODULE_SPACES:
            variable = self.variable(extern=linkage == ".extern")
            self.expect(";")
            self.finish(start)
            self.program.variables[variable.name] = variable
        elif linkage:
            self.fail(f"{linkage} before {word!r}")
        elif word == ".file":
            self.file()
        elif word == ".section":
            self.section()
        elif word == ".pragma":
            self.pragma()
        else:
            self.fail(f"unknown PTX directive {word!r}")

    def file(self) -> None:
        """Parse `.file 1 "path"`; the canonical text keeps only the file's name."""
        start = self.at
        self.take()
        self.natural()
        path = self.take()
        if not path.startswith('"'):
            self.fail(f"expected the name of a file, found {path!r}")
        if self.accept(","):  # time stamp and size
            self.natural()
            self.expect(",")
            self.natural()
        name = PurePosixPath(path.strip('"')).name
        if not re.fullmatch(r"[A-Za-z0-9_.+-]+", name):
            name = "unknown"
        kept = (*self.tokens[start : start + 2], f'"{name}"')
        self.add(kept, is_debugging=True)

    def section(self) -> None:
        """Parse `.section .debug_str { name: .b8 1,2,3 }`, the names that `.loc` refers to."""
        start = self.at
        self.take()
        if self.take() != ".debug_str":
            self.at -= 1
            self.fail(f"unknown PTX section {self.next!r}")
        self.expect("{")
        while not self.accept("}"):
            if self.accept(".b8"):
                self.natural()
                while self.accept(","):
                    self.natural()
            else:
                self.name()
                self.expect(":")
        self.finish(start, is_debugging=True)

    def pragma(self) -> None:
        start = self.at
        self.take()
        word = self.take()
        if not _PRAGMAS.fullmatch(word):
            self.fail(f"unknown PTX pragma {word}")
        self.expect(";")
        self.finish(start)

    # -- functions

    def function(self, start: int) -> None:
        is_entry = self.take() == ".entry"
        results = self.parameters() if self.next == "(" and not is_entry else ()
        name = self.name()
        parameters = self.parameters() if self.next == "(" else ()
        function = Function(name, is_entry, results, parameters)
        while self.next in _DIRECTIVES:
            self.directive(function)
        if self.accept(";"):
            self.finish(start)
            self.program.declared[name] = function
            return
        if name in self.program.functions:
            self.fail(f"the function {name} is defined twice")
        self.owner = name
        self.finish(start)
        self.body(function)
        self.owner = ""
        self.program.functions[name] = function

    def directive(self, function: Function) -> None:
        name = self.take().removeprefix(".")
        values: list[int] = []
        if re.fullmatch(r"[0-9]+", self.next):
            values.append(self.natural())
            while self.accept(","):
                values.append(self.natural())
        if name in function.directives:
            self.fail(f".{name} stands twice before {function.name}")
        function.directives[name] = tuple(values)

    # -- function bodies

    def body(self, function: Function) -> None:
        start, self.scopes, self.ranges, self.registers_by_name = self.at, [], set(), {}
        if self.next != "{":
            self.fail(f"expected the body of {function.name}, found {self.next!r}")
        self.statement(function)
        for parameter in (*function.results, *function.parameters):
            self.declare(parameter.name)
        while self.scopes:
            self.statement(function)
        for word in set(self.tokens[start : self.at]):
            found = _NUMBERED.fullmatch(word)
            if found and found[1] in self.ranges and not _INDEX.fullmatch(found[2]):
                written = (s for s in self.program.statements if s.function == self.owner)
                self.line = next((s.line for s in written if word in s.tokens), self.line)
                self.fail(f"{word} may be another name for a register of {found[1]}<...>")

    def open_scope(self) -> None:
        """Open a scope. Its labels are declared at once, since they may be used before their
        definition."""
        self.opened += 1
        self.scopes.append(_Scope(f".{self.opened}" if self.scopes else ""))
        if len(self.scopes) > MAX_SCOPE_DEPTH:
            self.fail("the PTX nests too deep")
        depth, tokens = 1, self.tokens
        for at in range(self.at, len(tokens)):
            word = tokens[at]
            if word == "{":
                depth += 1
            elif word == "}":
                depth -= 1
                if not depth:
                    return
            elif word == ":" and depth == 1 and IDENTIFIER.fullmatch(tokens[at - 1]):
                self.declare(tokens[at - 1], is_label=True)

    def declare(self, name: str, is_label: bool = False) -> str:
        """Declare a name. It is valid from its declaration on, but a label is valid in all of its
        scope. Another parser might confuse two of the same name, so nothing else may have a label's
        name."""
        scope = self.scopes[-1]
        for other in self.scopes:
            if name in other.unique and (is_label or other is scope or name in other.labels):
                self.fail(f"{name} is the name of two things")
        if is_label:
            scope.labels.add(name)
        self.inside.add(name)
        self.visible[name] = scope.unique.setdefault(name, name + scope.suffix)
        return self.visible[name]

    def close_scope(self) -> None:
        for name in self.scopes.pop().unique:
            del self.visible[name]
            for outer in self.scopes:
                if name in outer.unique:
                    self.visible[name] = outer.unique[name]

    def resolve(self, name: str) -> str:
        return self.visible.get(name, name)

    def statement(self, function: Function) -> None:
        word, start = self.next, self.at
        if word == ".loc":
            self.location()
        elif word == "{":
            self.take()
            self.open_scope()
            self.finish(start)
        elif word == "}":
            self.take()
            self.close_scope()
            self.finish(start)
        elif word == ";":
            self.take()
        elif word == ".reg":
            self.register_declaration(function)
        elif word in _FUNCTION_SPACES:
            variable = self.variable()
            self.expect(";")
            self.finish(start)
            name = self.declare(variable.name)
            function.variables[name] = replace(variable, name=name)
        elif word == ".pragma":
            self.pragma()
        elif word.startswith("."):
            self.fail(f"unknown PTX directive {word!r}")
        elif word and self.tokens[self.at + 1] == ":":
            self.label(function)
            self.finish(start)
        else:
            self.instruction(function)

    def label(self, function: Function) -> None:
        name = self.resolve(self.name())
        self.expect(":")
        if self.accept(".branchtargets"):
            function.branch_targets[name] = self.symbols()
        elif self.accept(".calltargets"):
            self.symbols()
            function.prototypes.add(name)
        elif self.accept(".callprototype"):
            self.prototype()
            function.prototypes.add(name)
        else:
            function.body.append(Label(name))

    def symbols(self) -> tuple[str, ...]:
        found = [self.resolve(self.symbol())]
        while self.accept(","):
            found.append(self.resolve(self.symbol()))
        self.expect(";")
        return tuple(found)

    def prototype(self) -> None:
        """Parse `(results) _ (parameters) .noreturn;`."""
        if self.next == "(":
            self.parameters()
        self.expect("_")
        if self.next == "(":
            self.parameters()
        self.accept(".noreturn")
        self.expect(";")

    def location(self) -> None:
        """Parse `.loc file line column, function_name label, inlined_at file line column`.

        The line of the user's file, which is the first file, is kept. For inlined code of a header
        it is the line of the call. Of an inlined function of the user's, the line of the call is
        kept, too. Line 0 means that the compiler has no line, so the previous line stays.

        The compiler writes where a header's code is inlined into another header's only once for
        each call, also if it repeats that code elsewhere, such as in an unrolled loop.
        """
        start = self.at
        self.take()
        places = [[self.natural() for _ in range(3)]]
        if self.accept(","):
            self.expect("function_name")
            self.symbol()
            if self.accept("+"):
                self.natural()
            self.expect(",")
            self.expect("inlined_at")
            places.append([self.natural() for _ in range(3)])
        self.finish(start, is_debugging=True)
        of_user = [line for file, line, _ in places if file == 1]
        self.in_header = places[0][0] != 1
        if of_user:
            self.line = of_user[0] or self.line
            self.caller = of_user[1] if len(of_user) > 1 else 0
        elif calls := self.calls.get(tuple(places[-1])):
            if (self.line, self.caller) not in calls:
                self.line, self.caller = next(reversed(calls))
        else:
            return
        if self.in_header:
            self.calls[tuple(places[0])][self.line, self.caller] = None

    def register_declaration(self, function: Function) -> None:
        written = [self.take(), self.next]
        if self.next in (".v2", ".v4"):
            self.fail("vector registers are not supported")
        kind = self.type()
        while True:
            written += self.registers(kind, function)
            written.append(self.next)
            if self.accept(";"):
                self.add(tuple(written), is_debugging=False)
                return
            self.expect(",")

    def registers(self, kind: Type, function: Function) -> list[str]:
        """Parse a register, or a range, `%r<9>`. In an inner scope the registers of a range are
        printed one by one, since `%r5` might also belong to a range of an outer scope."""
        start, names = self.at, [self.name()]
        is_range = self.accept("<")
        if is_range:
            prefix, count = names[0], self.natural()
            if count + len(function.registers) > MAX_REGISTERS:
                self.fail(f"a function with more than {MAX_REGISTERS} registers")
            names = [f"{prefix}{i}" for i in range(count)]
            self.program.names.update(names)
            self.expect(">")
        for name in names:
            unique = self.declare(name)
            function.registers[unique] = kind
            self.registers_by_name[unique] = Register(unique)
        if not is_range:
            return names
        if len(self.scopes) == 1:
            self.ranges.add(prefix)
            return self.tokens[start : self.at]
        if not names:
            self.fail("a range of no registers")
        return " , ".join(names).split()

    # -- instructions

    def instruction(self, function: Function) -> None:
        start = self.at
        guard: Register | Not | None = None
        if self.accept("@"):
            negated = self.accept("!")
            register = self.registers_by_name.get(self.resolve(self.take()))
            if register is None:
                self.fail("the guard of an instruction is not a register")
            guard = Not(register) if negated else register
        first, opcode = self.at, self.take()
        while self.next.startswith("."):  # blanks may precede modifiers
            opcode += self.take()
            self.tokens[first : self.at] = [opcode]
            self.at = first + 1
        if opcode not in self.opcodes:
            if not _OPCODE.fullmatch(opcode):
                self.fail(f"expected an instruction, found {opcode!r}")
            self.opcodes.add(opcode)
        operands = self.items(";")
        self.finish(start)
        text = self.program.statements[-1].text
        function.body.append(
            Instruction(opcode, operands, guard, self.line, text, self.caller, self.in_header)
        )

    def operand(self) -> Operand:
        first = self.simple_operand()
        return Pair(first, self.simple_operand()) if self.accept("|") else first

    def simple_operand(self) -> Operand:
        word = self.next
        register = self.registers_by_name.get(self.resolve(word))
        if register is not None:
            self.at += 1
            return register
        if word == "-" or isinstance(number(word), Integer):
            return Integer(self.integer())
        self.take()
        if word == "{":
            return Vector(self.items("}"))
        if word == "(":
            return Group(self.items(")"))
        if word == "[":
            return self.address()
        if word == "!":
            inner = self.simple_operand()
            if not isinstance(inner, Register):
                self.fail("only a register can be inverted")
            return Not(inner)
        if word == "_":
            return Sink()
        return self.named(word)

    def items(self, end: str) -> tuple[Operand, ...]:
        """Parse operands up to this token. Most are registers alone, which are found at once."""
        tokens, visible, registers = self.tokens, self.visible, self.registers_by_name
        found: list[Operand] = []
        while (word := tokens[self.at]) != end:
            register = registers.get(visible.get(word, word))
            behind = tokens[self.at + 1] if word else ""
            if register is not None and behind in (",", end):
                self.at += 1
                found.append(register)
            else:
                found.append(self.operand())
            if tokens[self.at] != end:
                self.expect(",")
        self.at += 1
        return tuple(found)

    def named(self, word: str) -> Operand:
        if found := number(word):
            return found
        if SPECIAL.fullmatch(word):
            return Special(word[1:])
        if word.startswith("%") or not IDENTIFIER.fullmatch(word):
            self.fail(f"unknown name {word!r}")
        return Symbol(self.resolve(word), self.offset())

    def offset(self) -> int:
        if self.accept("+"):
            return self.integer()
        return self.integer() if self.next == "-" else 0

    def address(self) -> Address | Coordinates:
        base = self.simple_operand()
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        else:
            offset = self.offset()
        if self.accept(","):
            return Coordinates(base, self.items("]"))
        self.expect("]")
        if not isinstance(base, (Register, Symbol, Integer)):
            self.fail("an address needs a register, a variable or a number")
        return Address(base, offset)
