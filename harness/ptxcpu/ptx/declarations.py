"""Variables and parameters: their spaces, sizes and initial values."""

from harness.ptxcpu.ptx.lexer import IDENTIFIER, number
from harness.ptxcpu.ptx.stream import TokenStream
from harness.ptxcpu.ptx.syntax import Float, Pointee, Variable
from harness.ptxcpu.ptx.types import Type

MAX_VARIABLE = 1 << 40  # bytes
MAX_ALIGNMENT = 1 << 20  # bytes; with gigabytes ptxas and nvdisasm take minutes

_POINTER_SPACES = {".const", ".global", ".local", ".shared"}


class Declarations(TokenStream):
    """Parses declarations of variables."""

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
        if align > MAX_ALIGNMENT:
            self.fail(f"an alignment of {align} bytes; at most {MAX_ALIGNMENT} are supported")
        return align

    def dimension(self) -> int:
        size = self.integer()
        if size < 1:
            self.fail(f"an array of {size} elements")
        return size

    def initialiser(self, kind: Type) -> tuple[bytes, tuple[Pointee, ...]]:
        """One value, or values in braces."""
        parts: list[bytes] = []
        pointees: list[Pointee] = []
        depth = 0
        while True:
            if self.accept("{"):
                depth += 1
            elif self.accept("}"):
                depth -= 1
            elif not (depth and self.accept(",")):
                parts.append(self.initial_value(kind, kind.bytes * len(parts), pointees))
            if depth == 0:
                return b"".join(parts), tuple(pointees)

    def initial_value(self, kind: Type, at: int, pointees: list[Pointee]) -> bytes:
        word = self.next
        if word == "generic" or IDENTIFIER.fullmatch(word):
            if self.accept("generic"):
                self.expect("(")
                name = self.symbol()
                self.expect(")")
            else:
                name = self.symbol()
            distance = 0
            while self.next in ("+", "-"):
                distance += self.product() if self.take() == "+" else -self.product()
            pointees.append(Pointee(at, name, distance))
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
