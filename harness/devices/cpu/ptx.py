"""Reads PTX text into functions, variables and instructions whose operands are typed values."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass, field
from typing import NoReturn

from harness.devices.cpu.errors import CannotTranslate
from harness.devices.cpu.types import TYPES, Type

LARGEST_TEXT = 16 << 20  # bytes of PTX; NVRTC gives 3 KB for a tile kernel
MOST_REGISTERS = 200_000  # of one function
DEEPEST_SCOPE = 64


# ---- what a program consists of


@dataclass(frozen=True)
class Register:
    name: str


@dataclass(frozen=True)
class Not:
    """`!%p`: a predicate register read inverted."""

    register: Register


@dataclass(frozen=True)
class Special:
    """`%tid.x` and the like."""

    name: str


@dataclass(frozen=True)
class Integer:
    value: int


@dataclass(frozen=True)
class Float:
    """`0f3F800000` or `0d3FF0000000000000`, kept as bits."""

    bits: int
    width: int

    @property
    def value(self) -> float:
        code = ("<I", "<f") if self.width == 32 else ("<Q", "<d")
        return float(struct.unpack(code[1], struct.pack(code[0], self.bits))[0])


@dataclass(frozen=True)
class Symbol:
    """The address of a variable, or the name of a label or function."""

    name: str
    offset: int = 0


@dataclass(frozen=True)
class Address:
    """`[base+offset]`."""

    base: Register | Symbol | Integer
    offset: int


@dataclass(frozen=True)
class Vector:
    """`{a, b, c, d}`."""

    items: tuple[Operand, ...]


@dataclass(frozen=True)
class Pair:
    """`d|p`: two results."""

    first: Operand
    second: Operand


@dataclass(frozen=True)
class Sink:
    """`_`: a result that nobody wants."""


@dataclass(frozen=True)
class Group:
    """`(a, b)`: the arguments or results of a call."""

    items: tuple[Operand, ...]


Operand = (
    Register | Not | Special | Integer | Float | Symbol | Address | Vector | Pair | Sink | Group
)


@dataclass(frozen=True)
class Instruction:
    opcode: str
    operands: tuple[Operand, ...]
    guard: Register | Not | None
    line: int
    text: str


@dataclass(frozen=True)
class Label:
    name: str


@dataclass(frozen=True)
class Variable:
    space: str
    align: int
    type: Type
    name: str
    size: int
    image: bytes = b""
    extern: bool = False


@dataclass
class Function:
    name: str
    is_entry: bool
    results: tuple[Variable, ...]
    parameters: tuple[Variable, ...]
    registers: dict[str, Type] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    branch_targets: dict[str, tuple[str, ...]] = field(default_factory=dict)
    body: list[Instruction | Label] = field(default_factory=list)


@dataclass
class Program:
    functions: dict[str, Function] = field(default_factory=dict)
    declared: dict[str, Function] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)


def parse(text: str) -> Program:
    """Parse a whole PTX module.

    Raises CannotTranslate for what this device does not read; the text itself is taken to have
    passed ptxas, so a syntax error is reported the same way.
    """
    if len(text) > LARGEST_TEXT:
        raise CannotTranslate(f"the PTX has {len(text)} bytes; this device reads {LARGEST_TEXT}")
    try:
        return _Parser(text).program()
    except RecursionError:
        raise CannotTranslate("the PTX nests too deep") from None


# ---- tokens

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<line>\.(?:version|target|address_size|file|loc)\b[^\n]*)
      | (?P<declaration>\.(?:reg|local|shared|param|global|const)(?=\.))
      | (?P<string>"[^"\n]*")
      | (?P<word>(?:[\w$%.]|::)+)
      | (?P<mark>[{}()\[\],;:|!@+\-<>=])""",
    re.X | re.S,
)
_LOC = re.compile(r"\.loc\s+(\d+)\s+(\d+)(?:.*inlined_at\s+(\d+)\s+(\d+))?")
_LINKAGE = {".visible", ".extern", ".weak", ".common"}
_SPACES = {".local", ".shared", ".global", ".const", ".param"}
_PERFORMANCE = {".maxntid", ".reqntid", ".minnctapersm", ".maxnreg", ".maxnctapersm", ".noreturn"}
_PERFORMANCE |= {".blocksareclusters", ".explicitcluster", ".reqnctapercluster", ".maxclusterrank"}


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise CannotTranslate(f"unreadable PTX: {text[at : at + 40].splitlines()[0]!r}")
        if match.lastgroup != "skip":
            found.append(match[0])
        at = match.end()
    return found


def parse_number(word: str) -> Integer | Float | None:
    """An integer (decimal, hexadecimal, octal, binary) or a float written as its bits."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}", word):
        return Float(int(word[2:], 16), 32)
    if re.fullmatch(r"0[dD][0-9a-fA-F]{16}", word):
        return Float(int(word[2:], 16), 64)
    plain = word.removesuffix("U")
    if re.fullmatch(r"0[xX][0-9a-fA-F]+|0[bB][01]+|[1-9]\d*|0", plain):
        return Integer(int(plain, 0))
    if re.fullmatch(r"0[0-7]+", plain):
        return Integer(int(plain, 8))
    if re.fullmatch(r"\d+\.\d*(?:[eE]\d+)?", word):
        return Float(struct.unpack("<Q", struct.pack("<d", float(word)))[0], 64)
    return None


class _Parser:
    """Recursive descent over the tokens. `scopes` renames what inner `{ }` declare."""

    def __init__(self, text: str) -> None:
        self.tokens = _tokens(text)
        self.at = 0
        self.line = 0
        self.serial = 0
        self.scopes: list[dict[str, str]] = []

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
        raise CannotTranslate(reason, around, self.line)

    # -- module level

    def program(self) -> Program:
        program = Program()
        while self.next:
            linkage = set()
            while self.next in _LINKAGE:
                linkage.add(self.take())
            word = self.next
            if word.startswith((".version", ".target", ".address_size", ".file", ".loc")):
                self.take()
            elif word in (".entry", ".func"):
                function, defined = self.function()
                (program.functions if defined else program.declared)[function.name] = function
            elif word in _SPACES:
                variable = self.variable(extern=".extern" in linkage)
                self.expect(";")
                program.variables[variable.name] = variable
            elif word == ".section":
                self.skip_braces()
            elif word == ".pragma":
                self.skip_to(";")
            else:
                self.fail(f"this device does not know the PTX directive {word!r}")
        return program

    def skip_to(self, mark: str) -> None:
        while not self.accept(mark):
            self.take()

    def skip_braces(self) -> None:
        self.skip_to("{")
        depth = 1
        while depth:
            word = self.take()
            depth += (word == "{") - (word == "}")

    def integer(self) -> int:
        sign = -1 if self.accept("-") else 1
        number = parse_number(self.take())
        if not isinstance(number, Integer):
            self.at -= 1
            self.fail(f"expected an integer, found {self.next!r}")
        return sign * number.value

    def type(self) -> Type:
        name = self.take().removeprefix(".")
        if name not in TYPES:
            self.at -= 1
            self.fail(f"this device does not know the PTX type .{name}")
        return TYPES[name]

    def variable(self, extern: bool = False) -> Variable:
        """`.shared .align 4 .b8 name[1024]`, with an initialiser at most."""
        space, align = self.take().removeprefix("."), 0
        while self.next in (".align", ".ptr") or self.next in _SPACES or self.next in (".managed",):
            word = self.take()
            if word == ".align":
                align = max(align, self.integer())
        if self.next in (".v2", ".v4", ".v8"):
            self.fail("this device does not know vector variables")
        kind = self.type()
        while self.next in (".ptr", ".align") or self.next in _SPACES:  # how a pointer is used
            if self.take() == ".align":
                self.integer()
        name, size = self.take(), kind.bytes
        while self.accept("["):
            size *= 0 if self.next == "]" else self.integer()
            self.expect("]")
        image = self.image(kind) if self.accept("=") else b""
        if align & (align - 1):
            self.fail(f"an alignment of {align} is not a power of two")
        return Variable(space, max(align, kind.bytes), kind, name, size, image, extern)

    def image(self, kind: Type) -> bytes:
        """An initialiser: one number, or numbers in braces."""
        parts: list[bytes] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
            elif self.accept("}"):
                depth -= 1
            elif not self.accept(","):
                parts.append(self.initial(kind))
            if depth == 0:
                return b"".join(parts)

    def initial(self, kind: Type) -> bytes:
        sign = -1 if self.accept("-") else 1
        number = parse_number(self.take())
        if isinstance(number, Float):
            if number.width != kind.bits or sign < 0:
                self.fail("a number of another width initialises a variable")
            return number.bits.to_bytes(kind.bytes, "little")
        if number is None:
            self.fail("this device does not know variables that hold the address of another")
        return (sign * number.value % (1 << 8 * kind.bytes)).to_bytes(kind.bytes, "little")

    def parameters(self) -> tuple[Variable, ...]:
        found: list[Variable] = []
        self.expect("(")
        while not self.accept(")"):
            if self.next == ".reg":
                self.fail("this device does not know functions with register parameters")
            found.append(self.variable())
            self.accept(",")
        return tuple(found)

    def function(self) -> tuple[Function, bool]:
        is_entry = self.take() == ".entry"
        results = self.parameters() if self.next == "(" else ()
        name = self.take()
        parameters = self.parameters() if self.next == "(" else ()
        while self.next in _PERFORMANCE:
            if self.next == ".reqnctapercluster":
                self.cluster_dimensions()
                continue
            self.take()
            while re.fullmatch(r"\d+|,", self.next):
                self.take()
        function = Function(name, is_entry, results, parameters)
        if self.accept(";"):
            return function, False
        self.expect("{")
        self.body(function)
        return function, True

    def cluster_dimensions(self) -> None:
        self.take()
        while re.fullmatch(r"\d+|,", self.next):
            if self.take() not in ("1", ","):
                self.fail("thread block clusters of more than one block")

    # -- function bodies

    def body(self, function: Function) -> None:
        self.scopes = []
        self.open_scope()
        while self.scopes:
            self.statement(function)

    def open_scope(self) -> None:
        """Labels may be used before they stand, so they are declared on entry."""
        self.scopes.append({})
        self.serial += 1
        if len(self.scopes) > DEEPEST_SCOPE:
            self.fail("the PTX nests too deep")
        if len(self.scopes) == 1:
            return
        depth, at = 1, self.at
        while depth and at < len(self.tokens) - 1:
            word = self.tokens[at]
            depth += (word == "{") - (word == "}")
            if depth == 1 and self.tokens[at + 1] == ":" and re.match(r"[\w$%]", word):
                self.declare(word)
            at += 1

    def declare(self, name: str) -> str:
        unique = name if len(self.scopes) == 1 else f"{name}.{self.serial}"
        self.scopes[-1][name] = unique
        return unique

    def resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def statement(self, function: Function) -> None:
        word = self.next
        if word == "{":
            self.take()
            self.open_scope()
        elif word == "}":
            self.take()
            self.scopes.pop()
        elif word == ";":
            self.take()
        elif _LOC.match(word):
            self.location(self.take())
        elif word == ".reg":
            self.take()
            self.register_declaration(function)
        elif word in _SPACES:
            variable = self.variable()
            self.expect(";")
            function.variables[self.declare(variable.name)] = variable
        elif word == ".pragma":
            self.skip_to(";")
        elif word.startswith("."):
            self.fail(f"this device does not know the PTX directive {word!r}")
        elif self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] == ":":
            self.label(function)
        else:
            function.body.append(self.instruction(function))

    def label(self, function: Function) -> None:
        name = self.resolve(self.take())
        self.expect(":")
        if self.accept(".branchtargets"):
            targets = [self.resolve(self.take())]
            while self.accept(","):
                targets.append(self.resolve(self.take()))
            self.expect(";")
            function.branch_targets[name] = tuple(targets)
        elif self.next in (".callprototype", ".calltargets"):
            self.fail("this device does not know function pointers")
        else:
            function.body.append(Label(name))

    def location(self, text: str) -> None:
        """The line of the user's file: where code of a header was inlined, the place it was
        inlined at. Line 0 means that the compiler has no line, so the last one stands."""
        match = _LOC.match(text)
        if match is None:
            return
        if match[1] == "1":
            self.line = int(match[2]) or self.line
        elif match[3] == "1":
            self.line = int(match[4]) or self.line

    def register_declaration(self, function: Function) -> None:
        kind = self.type()
        while True:
            name = self.take()
            if self.accept("<"):
                count = self.integer()
                if count + len(function.registers) > MOST_REGISTERS:
                    self.fail(f"a function with more than {MOST_REGISTERS} registers")
                for i in range(count):
                    function.registers[self.declare(f"{name}{i}")] = kind
                self.expect(">")
            else:
                function.registers[self.declare(name)] = kind
            if self.accept(";"):
                return
            self.expect(",")

    def instruction(self, function: Function) -> Instruction:
        start = self.at
        guard: Register | Not | None = None
        if self.accept("@"):
            negated = self.accept("!")
            guard = Register(self.resolve(self.take()))
            if guard.name not in function.registers:
                self.fail("the guard of an instruction is not a register")
            guard = Not(guard) if negated else guard
        opcode = self.take()
        operands: list[Operand] = []
        while not self.accept(";"):
            operands.append(self.operand(function))
            if self.next != ";":
                self.expect(",")
        text = _join(self.tokens[start : self.at])
        return Instruction(opcode, tuple(operands), guard, self.line, text)

    def operand(self, function: Function) -> Operand:
        first = self.simple_operand(function)
        return Pair(first, self.simple_operand(function)) if self.accept("|") else first

    def simple_operand(self, function: Function) -> Operand:
        word = self.take()
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
        if word == "-":
            return self.negative()
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

    def negative(self) -> Operand:
        number = parse_number(self.take())
        if not isinstance(number, Integer):
            self.fail("only an integer can be negative")
        return Integer(-number.value)

    def named(self, function: Function, word: str) -> Operand:
        if number := parse_number(word):
            return number
        name = self.resolve(word)
        if name in function.registers:
            return Register(name)
        if word.startswith("%"):
            return Special(word[1:])
        if not re.match(r"[\w$]", word):
            self.fail(f"unexpected {word!r}")
        return Symbol(name, self.offset())

    def offset(self) -> int:
        if self.accept("+"):
            return self.integer()
        return self.integer() if self.next == "-" else 0

    def address(self, function: Function) -> Address:
        base = self.simple_operand(function)
        if isinstance(base, Symbol):
            base, offset = Symbol(base.name), base.offset
        else:
            offset = self.offset()
        if self.next == ",":
            self.fail("this device does not know tensor and texture coordinates")
        self.expect("]")
        if not isinstance(base, (Register, Symbol, Integer)):
            self.fail("an address needs a register, a variable or a number")
        return Address(base, offset)


def _join(tokens: list[str]) -> str:
    text = " ".join(tokens)
    text = re.sub(r" ([,;\])+>])", r"\1", text)
    return re.sub(r"([@!\[(+<]) ", r"\1", text)
