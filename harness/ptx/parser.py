"""Reads PTX, all of it: what this grammar does not know is an error that names it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import NoReturn

from harness.ptx.errors import PtxError
from harness.ptx.lexer import IDENTIFIER, joined, number, tokens
from harness.ptx.syntax import (
    Address,
    Coordinates,
    Float,
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
    Statement,
    Symbol,
    Variable,
    Vector,
)
from harness.ptx.types import TYPES, Type

MAX_TEXT = 16 << 20  # bytes of PTX; NVRTC gives 3 KB for a tile kernel
MAX_REGISTERS = 200_000  # of one function
MAX_SCOPE_DEPTH = 64
MAX_VARIABLE = 1 << 40  # bytes

_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_MODULE_SPACES = {".shared", ".global", ".const"}
_FUNCTION_SPACES = {".local", ".shared", ".global", ".const", ".param"}
_POINTER_SPACES = {".const", ".global", ".local", ".shared"}
_DIRECTIVES = {
    *(".maxnreg", ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".noreturn"),
    *(".reqnctapercluster", ".explicitcluster", ".maxclusterrank", ".blocksareclusters"),
}
_PRAGMAS = re.compile(r'"(nounroll|enable_smem_spilling|(used_bytes_mask|frequency) [0-9]+)"')
_OPCODE = re.compile(r"[a-z][a-z0-9_]*(?:(?:\.|::)[A-Za-z0-9_]+)*")
_SPECIAL = re.compile(
    r"%(?:(?:tid|ntid|ctaid|nctaid|clusterid|nclusterid|cluster_ctaid|cluster_nctaid)(?:\.[xyzw])?"
    r"|laneid|warpid|nwarpid|smid|nsmid|gridid|is_explicit_cluster|cluster_n?ctarank"
    r"|lanemask_(?:eq|le|lt|ge|gt)|clock|clock_hi|clock64|pm[0-7](?:_64)?|envreg[0-9]+"
    r"|globaltimer(?:_lo|_hi)?|reserved_smem_offset_(?:begin|end|cap|[01])"
    r"|(?:total|aggr|dynamic)_smem_size|current_graph_exec)"
)


def parse(text: str) -> Program:
    """Parse a whole PTX module. Raises PtxError for what is not known here."""
    if len(text) > MAX_TEXT:
        raise PtxError(f"the PTX has {len(text)} bytes; at most {MAX_TEXT} are read")
    try:
        return _Parser(text).parse()
    except RecursionError:
        raise PtxError("the PTX nests too deep") from None


@dataclass(frozen=True)
class _Scope:
    """What `{ }` declares: the unique name of each name. The outermost keeps names as they are."""

    suffix: str
    unique: dict[str, str] = field(default_factory=dict)


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str) -> None:
        self.tokens = tokens(text)
        self.at = 0
        self.line = 0
        self.owner = ""
        self.opened = 0
        self.scopes: list[_Scope] = []
        self.program = Program()

    # -- the token stream

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        word = self.next
        if not word:
            self.fail("the PTX ends too early")
        self.at += 1
        return word

    def accept(self, word: str) -> bool:
        if self.next == word:
            self.at += 1
            return True
        return False

    def expect(self, word: str) -> None:
        if not self.accept(word):
            self.fail(f"expected {word!r}, found {self.next!r}")

    def fail(self, reason: str) -> NoReturn:
        around = " ".join(self.tokens[max(0, self.at - 6) : self.at + 6])
        raise PtxError(reason, around, self.line)

    def finish(self, start: int, is_debugging: bool = False) -> None:
        """The tokens from `start` on are one statement of the canonical text."""
        self.add(tuple(self.tokens[start : self.at]), is_debugging)

    def add(self, found: tuple[str, ...], is_debugging: bool) -> None:
        self.program.statements.append(
            Statement(found, joined(found), self.owner, self.line, is_debugging)
        )

    def integer(self) -> int:
        """A constant: sums and products of integers are allowed."""
        total = self.product()
        while self.next in ("+", "-"):
            total += self.product() if self.take() == "+" else -self.product()
        return total

    def product(self) -> int:
        result = self.signed_integer()
        while self.accept("*"):
            result *= self.signed_integer()
        return result

    def signed_integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        found = number(self.take())
        if not isinstance(found, Integer):
            self.at -= 1
            self.fail(f"expected an integer, found {self.next!r}")
        return sign * found.value

    def natural(self) -> int:
        found = self.signed_integer()
        if found < 0:
            self.fail(f"expected a size, found {found}")
        return found

    def name(self) -> str:
        """A name that the program gives to something."""
        word = self.take()
        if not IDENTIFIER.fullmatch(word):
            self.at -= 1
            self.fail(f"expected a name, found {word!r}")
        self.program.names.add(word)
        return word

    def type(self) -> Type:
        name = self.take().removeprefix(".")
        if name not in TYPES:
            self.at -= 1
            self.fail(f"unknown PTX type .{name}")
        return TYPES[name]

    # -- module level

    def parse(self) -> Program:
        self.header()
        while self.next:
            self.module_statement()
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
        """`.file 1 "path"`, of which the canonical text keeps the file's name alone."""
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
        """`.section .debug_str { name: .b8 1,2,3 }`: the names that `.loc` refers to."""
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

    # -- variables

    def variable(self, extern: bool = False) -> Variable:
        """`.shared .align 4 .b8 name[1024]`, with an initialiser at most."""
        space, align = self.take().removeprefix("."), 0
        if self.accept(".attribute"):
            for word in ("(", ".managed", ")"):
                self.expect(word)
        if self.accept(".align"):
            align = self.alignment()
        if self.next in (".v2", ".v4", ".v8"):
            self.fail("vector variables are not supported")
        kind = self.type()
        if space == "param" and self.accept(".ptr"):
            if self.next in _POINTER_SPACES:
                self.take()
            if self.accept(".align"):
                self.alignment()
        name = self.name() if self.next != "_" or space != "param" else self.take()
        size, is_array, unsized = kind.bytes, False, False
        while self.accept("["):
            is_array = True
            if self.next == "]":
                if unsized or size != kind.bytes:
                    self.fail("only the first dimension of an array may be left open")
                unsized = True
            else:
                size *= self.dimension()
            self.expect("]")
        image, pointees = self.initialiser(kind) if self.accept("=") else (b"", ())
        if unsized:
            size = -(-len(image) // size) * size
        if unsized and not extern and not image:
            self.fail(f"the array {name} has no size")
        if len(image) > size:
            self.fail(f"more values than {name} has elements")
        if size > MAX_VARIABLE:
            self.fail(f"{name} takes {size} bytes; a variable may take {MAX_VARIABLE}")
        return Variable(
            space, max(align, kind.bytes), kind, name, size, is_array, image, pointees, extern
        )

    def alignment(self) -> int:
        align = self.natural()
        if align < 1 or align & (align - 1):
            self.fail(f"an alignment of {align} is not a power of two")
        return align

    def dimension(self) -> int:
        size = self.integer()
        if size < 1:
            self.fail(f"an array of {size} elements")
        return size

    def initialiser(self, kind: Type) -> tuple[bytes, tuple[str, ...]]:
        """One value, or values in braces."""
        parts: list[bytes] = []
        pointees: list[str] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
            elif self.accept("}"):
                depth -= 1
            elif not (depth and self.accept(",")):
                parts.append(self.initial_value(kind, pointees))
            if depth == 0:
                return b"".join(parts), tuple(pointees)

    def initial_value(self, kind: Type, pointees: list[str]) -> bytes:
        word = self.next
        if word == "generic" or IDENTIFIER.fullmatch(word):
            if self.accept("generic"):
                self.expect("(")
                pointees.append(self.symbol())
                self.expect(")")
            else:
                pointees.append(self.symbol())
            if self.next in ("+", "-"):
                self.integer()
            return bytes(kind.bytes)
        sign = -1 if self.accept("-") else 1
        found = number(self.take())
        if isinstance(found, Float):
            if found.width != kind.bits or sign < 0:
                self.fail("a number of another width initialises a variable")
            return found.bits.to_bytes(kind.bytes, "little")
        if found is None:
            self.at -= 1
            self.fail(f"expected a value, found {self.next!r}")
        return (sign * found.value % (1 << 8 * kind.bytes)).to_bytes(kind.bytes, "little")

    def symbol(self) -> str:
        word = self.take()
        if not IDENTIFIER.fullmatch(word):
            self.at -= 1
            self.fail(f"expected a symbol, found {word!r}")
        return word

    # -- functions

    def parameters(self) -> tuple[Variable, ...]:
        found: list[Variable] = []
        self.expect("(")
        while not self.accept(")"):
            if self.next != ".param":
                self.fail(f"expected a .param, found {self.next!r}")
            found.append(self.variable())
            if self.next != ")":
                self.expect(",")
        return tuple(found)

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
        function.directives[name] = tuple(values)

    # -- function bodies

    def body(self, function: Function) -> None:
        self.scopes = []
        if self.next != "{":
            self.fail(f"expected the body of {function.name}, found {self.next!r}")
        self.statement(function)
        while self.scopes:
            self.statement(function)

    def open_scope(self) -> None:
        """Labels may be used before they stand, so they are declared on entry."""
        self.opened += 1
        self.scopes.append(_Scope(f".{self.opened}" if self.scopes else ""))
        if len(self.scopes) > MAX_SCOPE_DEPTH:
            self.fail("the PTX nests too deep")
        if len(self.scopes) == 1:
            return
        depth, at = 1, self.at
        while depth and at < len(self.tokens) - 1:
            word = self.tokens[at]
            depth += (word == "{") - (word == "}")
            if depth == 1 and self.tokens[at + 1] == ":" and IDENTIFIER.fullmatch(word):
                self.declare(word)
            at += 1

    def declare(self, name: str) -> str:
        scope = self.scopes[-1]
        return scope.unique.setdefault(name, name + scope.suffix)

    def resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope.unique:
                return scope.unique[name]
        return name

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
            self.scopes.pop()
            self.finish(start)
        elif word == ";":
            self.take()
        elif word == ".reg":
            self.take()
            self.register_declaration(function)
            self.finish(start)
        elif word in _FUNCTION_SPACES:
            variable = self.variable()
            self.expect(";")
            self.finish(start)
            function.variables[self.declare(variable.name)] = variable
        elif word == ".pragma":
            self.pragma()
        elif word.startswith("."):
            self.fail(f"unknown PTX directive {word!r}")
        elif self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
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
        """`(results) _ (parameters) .noreturn;`"""
        if self.next == "(":
            self.parameters()
        self.expect("_")
        if self.next == "(":
            self.parameters()
        self.accept(".noreturn")
        self.expect(";")

    def location(self) -> None:
        """`.loc file line column, function_name label, inlined_at file line column`.

        The line kept is that of the user's file, which is the first: where code of a header was
        inlined, the place it was inlined at. Line 0 means that the compiler has no line, so the
        last one stands.
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
        for file, line, _ in places:
            if file == 1:
                self.line = line or self.line
                return

    def register_declaration(self, function: Function) -> None:
        if self.next in (".v2", ".v4"):
            self.fail("vector registers are not supported")
        kind = self.type()
        while True:
            name = self.name()
            if self.accept("<"):
                count = self.natural()
                if count + len(function.registers) > MAX_REGISTERS:
                    self.fail(f"a function with more than {MAX_REGISTERS} registers")
                for i in range(count):
                    function.registers[self.declare(f"{name}{i}")] = kind
                    self.program.names.add(f"{name}{i}")
                self.expect(">")
            else:
                function.registers[self.declare(name)] = kind
            if self.accept(";"):
                return
            self.expect(",")

    # -- instructions

    def instruction(self, function: Function) -> None:
        start = self.at
        guard: Register | Not | None = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = Register(self.resolve(self.take()))
            if guard.name not in function.registers:
                self.fail("the guard of an instruction is not a register")
            guard = Not(guard) if negated else guard
        first, opcode = self.at, self.take()
        while self.next.startswith("."):  # modifiers may stand apart
            opcode += self.take()
            self.tokens[first : self.at] = [opcode]
            self.at = first + 1
        if not _OPCODE.fullmatch(opcode):
            self.fail(f"expected an instruction, found {opcode!r}")
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand(function))
            if self.next != ";":
                self.expect(",")
        self.finish(start)
        text = self.program.statements[-1].text
        function.body.append(Instruction(opcode, tuple(operands), guard, self.line, text))

    def operand(self, function: Function) -> Operand:
        first = self.simple_operand(function)
        return Pair(first, self.simple_operand(function)) if self.accept("|") else first

    def simple_operand(self, function: Function) -> Operand:
        word = self.next
        if word == "-" or isinstance(number(word), Integer):
            return Integer(self.integer())
        self.take()
        if word == "{":
            return Vector(self.items(function, "}"))
        if word == "(":
            return Group(self.items(function, ")"))
        if word == "[":
            return self.address(function)
        if word == "!":
            inner = self.simple_operand(function)
            if not isinstance(inner, Register):
                self.fail("only a register can be inverted")
            return Not(inner)
        if word == "_":
            return Sink()
        return self.named(function, word)

    def items(self, function: Function, end: str) -> tuple[Operand, ...]:
        found: list[Operand] = []
        while not self.accept(end):
            found.append(self.operand(function))
            if self.next != end:
                self.expect(",")
        return tuple(found)

    def named(self, function: Function, word: str) -> Operand:
        if found := number(word):
            return found
        name = self.resolve(word)
        if name in function.registers:
            return Register(name)
        if _SPECIAL.fullmatch(word):
            return Special(word[1:])
        if word.startswith("%") or not IDENTIFIER.fullmatch(word):
            self.fail(f"unknown name {word!r}")
        return Symbol(name, self.offset())

    def offset(self) -> int:
        if self.accept("+"):
            return self.integer()
        return self.integer() if self.next == "-" else 0

    def address(self, function: Function) -> Address | Coordinates:
        base = self.simple_operand(function)
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        else:
            offset = self.offset()
        if self.accept(","):
            return Coordinates(base, self.items(function, "]"))
        self.expect("]")
        if not isinstance(base, (Register, Symbol, Integer)):
            self.fail("an address needs a register, a variable or a number")
        return Address(base, offset)
