"""Writes the products of tensor cores as LLVM vector code: 16 rows of A at a time are the lanes.

What the accumulators keep is that of Hopper's tensor cores. An instruction (mma.sync, wgmma) adds
all its products to an accumulator at once: every product is exact, all summands are cut off
(towards zero) below 2^-FRACTION_BITS of the largest one's exponent, the rest is summed exactly,
and the sum is cut off to the 24 bits of a float. The exponent of a product is the sum of its
factors', which are not normalised; a zero has none. tests/ptxcpu/test_tensor_core_sums.py finds
these numbers on a GPU: an H200 gave the same bits for every form and every random operand. The
method is that of Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores"
(2021), and of Xie and others, "MMA-Sim" (2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FRACTION_BITS = 25
"""Bits of a summand that count, below the exponent of the largest summand."""

ROWS, COLUMNS, MAX_DEPTH = 16, 8, 32
BLOCK = 4
"""Columns that are summed at once: as many as registers have room for."""

_NO_EXPONENT = -1000  # of a zero
_FLOAT_FRACTION, _FLOAT_BIAS = 23, 127
_DOUBLE_FRACTION, _DOUBLE_BIAS = 52, 1023
_ORDINARY = 40
"""Exponents of elements up to this leave all products, and the largest one in units of its last bit
that counts, in the range of a float. Products of others are computed as doubles."""

_ORDINARY_ACCUMULATOR = 100
_LEAST_EXPONENT = {"float": -100, "double": -500}
"""Of the largest summand, so that a power of two by which it is scaled stays in range."""


@dataclass(frozen=True)
class Kind:
    """A type of elements.

    each: elements in a 32-bit register.
    least_exponent: of a number that is not zero, as the hardware sees it: it does not normalise.
    """

    name: str
    each: int
    least_exponent: int = 1 - _FLOAT_BIAS
    is_integer: bool = False

    @property
    def depth(self) -> int:
        """Elements in 16 bytes, the part of a row that lies in one word of the lanes."""
        return 4 * self.each

    @property
    def element(self) -> str:
        return f"i{32 // self.each}"


KINDS = (
    Kind("tf32", 1),
    Kind("f16", 2, -14),
    Kind("bf16", 2),
    Kind("s8", 4, is_integer=True),
    Kind("u8", 4, is_integer=True),
)
"""In the order of the runtime's `Kind`."""

VECTOR, INTEGERS = f"<{ROWS} x float>", f"<{ROWS} x i32>"
DOUBLES, LONGS = f"<{ROWS} x double>", f"<{ROWS} x i64>"


def primitives() -> str:
    """The functions that the runtime calls, for every kind of elements."""
    parts = [
        f"declare <{n} x i32> @llvm.smax.v{n}i32(<{n} x i32>, <{n} x i32>)" for n in (4, 8, ROWS)
    ]
    parts += [f"declare i1 @llvm.vector.reduce.and.v{n}i1(<{n} x i1>)" for n in (4, 8, ROWS)]
    parts.append(f"declare {DOUBLES} @llvm.trunc.v{ROWS}f64({DOUBLES})")
    parts.append(f"declare {VECTOR} @llvm.fma.v{ROWS}f32({VECTOR}, {VECTOR}, {VECTOR})")
    parts.append(f"declare {INTEGERS} @llvm.sadd.sat.v{ROWS}i32({INTEGERS}, {INTEGERS})")
    parts += [_unpack(kind) for kind in KINDS]
    parts += [_multiply(kind) for kind in KINDS]
    parts.append(_dispatcher("host_unpack_rows", "unpack", 4))
    parts.append(_dispatcher("host_multiply", "multiply", 5))
    return "\n".join(parts)


class _Text:
    """The lines of a function, and names for its values."""

    def __init__(self, head: str) -> None:
        self.lines = [head]
        self._count = 0
        self._carried = 0  # the line of the first value of a loop

    def emit(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self._count += 1
        self.emit(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def begin_loop(self, name: str, before: str, values: Sequence[tuple[str, str]]) -> list[str]:
        """Begin a loop over %NAME.k = 0, 1, ... with values of (type, first value)."""
        self.emit(f"br label %{name}", f"{name}:")
        self.emit(f"%{name}.k = phi i64 [0, %{before}], [%{name}.next, %{name}]")
        self._carried = len(self.lines)
        for i, (type_, first) in enumerate(values):
            self.emit(f"%{name}.{i} = phi {type_} [{first}, %{before}]")
        return [f"%{name}.{i}" for i in range(len(values))]

    def end_loop(self, name: str, count: str, values: Sequence[str], after: str) -> None:
        """values: what those of the loop are the next time."""
        for i, value in enumerate(values, self._carried):
            self.lines[i] += f", [{value}, %{name}]"
        self.emit(f"%{name}.next = add i64 %{name}.k, 1")
        self.emit(f"%{name}.more = icmp ult i64 %{name}.next, {count}")
        self.emit(f"br i1 %{name}.more, label %{name}, label %{after}", f"{after}:")

    def place(self, base: str, *offsets: str | int, size: int = 1) -> str:
        """The address of base plus the sum of the offsets times a size in bytes."""
        for offset in offsets:
            base = self.value(f"getelementptr [{size} x i8], ptr {base}, i64 {offset}")
        return base

    def __str__(self) -> str:
        return "\n".join([*self.lines, "}"])


def _same(n: int, type_: str, number: str | int) -> str:
    """A vector of equal constants."""
    return "<" + ", ".join([f"{type_} {number}"] * n) + ">"


def _splat(t: _Text, type_: str, x: str) -> str:
    """One number for all rows."""
    one = t.value(f"insertelement <{ROWS} x {type_}> poison, {type_} {x}, i32 0")
    zeros = f"<{ROWS} x i32> zeroinitializer"
    return t.value(f"shufflevector <{ROWS} x {type_}> {one}, <{ROWS} x {type_}> poison, {zeros}")


def _mask(lanes: Sequence[int]) -> str:
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"


def _larger(t: _Text, n: int, a: str, b: str) -> str:
    wide = f"<{n} x i32>"
    return t.value(f"call {wide} @llvm.smax.v{n}i32({wide} {a}, {wide} {b})")


def _converted(t: _Text, kind: Kind, n: int, raw: str) -> str:
    """n elements as floats."""
    wide, floats = f"<{n} x i32>", f"<{n} x float>"
    if kind.is_integer:
        how = "sitofp" if kind.name == "s8" else "uitofp"
        return t.value(f"{how} <{n} x i8> {raw} to {floats}")
    if kind.name == "f16":
        halves = t.value(f"bitcast <{n} x i16> {raw} to <{n} x half>")
        return t.value(f"fpext <{n} x half> {halves} to {floats}")
    if kind.name == "bf16":
        extended = t.value(f"zext <{n} x i16> {raw} to {wide}")
        bits = t.value(f"shl {wide} {extended}, {_same(n, 'i32', 16)}")
    else:  # tensor cores ignore the low bits
        bits = t.value(f"and {wide} {raw}, {_same(n, 'i32', -8192)}")
    return t.value(f"bitcast {wide} {bits} to {floats}")


def _exponents(t: _Text, n: int, x: str, least: int) -> str:
    """Those of n floats."""
    wide = f"<{n} x i32>"
    bits = t.value(f"bitcast <{n} x float> {x} to {wide}")
    shifted = t.value(f"lshr {wide} {bits}, {_same(n, 'i32', _FLOAT_FRACTION)}")
    field = t.value(f"and {wide} {shifted}, {_same(n, 'i32', 255)}")
    exponent = t.value(f"sub {wide} {field}, {_same(n, 'i32', _FLOAT_BIAS)}")
    bounded = _larger(t, n, exponent, _same(n, "i32", least))
    zero = t.value(f"fcmp oeq <{n} x float> {x}, zeroinitializer")
    none = _same(n, "i32", _NO_EXPONENT)
    return t.value(f"select <{n} x i1> {zero}, {wide} {none}, {wide} {bounded}")


def _are_ordinary(t: _Text, n: int, exponents: str) -> str:
    """Whether all are those of zero, or at most _ORDINARY."""
    wide = f"<{n} x i32>"
    shifted = t.value(f"add {wide} {exponents}, {_same(n, 'i32', _ORDINARY)}")
    near = t.value(f"icmp ule {wide} {shifted}, {_same(n, 'i32', 2 * _ORDINARY)}")
    zero = t.value(f"icmp eq {wide} {exponents}, {_same(n, 'i32', _NO_EXPONENT)}")
    either = t.value(f"or <{n} x i1> {near}, {zero}")
    return t.value(f"call i1 @llvm.vector.reduce.and.v{n}i1(<{n} x i1> {either})")


# ---- struct Rows {
#     float x[MAX_DEPTH][ROWS]; int exponent[MAX_DEPTH][ROWS]; long long is_ordinary; }

_ROW_BYTES = 4 * ROWS
_EXPONENTS_AT = MAX_DEPTH * _ROW_BYTES
_IS_ORDINARY_AT = 2 * _EXPONENTS_AT


def _unpack(kind: Kind) -> str:
    """Rows of A: word 2p of all lanes has 8 rows, one after the other, of a part of their depth,
    word 2p+1 has the other 8."""
    depth = kind.depth
    given = "ptr %to, ptr %raw, i64 %pairs, i64 %minus"
    t = _Text(f"define internal void @unpack_{kind.name}({given}) {{")
    t.emit("begin:")
    t.emit("%sign = icmp ne i64 %minus, 0")
    signs = _splat(t, "float", t.value("select i1 %sign, float -1.0, float 1.0"))
    (ordinary,) = t.begin_loop("pair", "begin", [("i1", "true")])
    part = f"<{8 * depth} x {kind.element}>"
    upper_at = t.place("%raw", "%pair.k", size=256)
    upper = t.value(f"load {part}, ptr {upper_at}, align 4")
    lower = t.value(f"load {part}, ptr {t.place(upper_at, 128)}, align 4")
    first = t.place("%to", "%pair.k", size=depth * _ROW_BYTES)
    for k in range(depth):
        lanes = [row * depth + k for row in range(ROWS)]
        raw = t.value(f"shufflevector {part} {upper}, {part} {lower}, {_mask(lanes)}")
        x = _converted(t, kind, ROWS, raw)
        signed = t.value(f"fmul {VECTOR} {x}, {signs}")
        t.emit(f"store {VECTOR} {signed}, ptr {t.place(first, k * _ROW_BYTES)}, align 4")
        if kind.is_integer:
            continue
        exponents = _exponents(t, ROWS, x, kind.least_exponent)
        at = t.place(first, _EXPONENTS_AT + k * _ROW_BYTES)
        t.emit(f"store {INTEGERS} {exponents}, ptr {at}, align 4")
        ordinary = t.value(f"and i1 {ordinary}, {_are_ordinary(t, ROWS, exponents)}")
    t.end_loop("pair", "%pairs", [ordinary], "end")
    whole = t.value(f"zext i1 {ordinary} to i64")
    t.emit(f"store i64 {whole}, ptr {t.place('%to', _IS_ORDINARY_AT)}", "ret void")
    return str(t)


def _multiply(kind: Kind) -> str:
    """Add the product with 8 columns of B to four words of accumulators.

    Word p of B has, one after the other, of each column a part of its depth.
    """
    given = "ptr %d, ptr %a, ptr %raw, i64 %pairs, i64 %saturates"
    t = _Text(f"define internal void @multiply_{kind.name}({given}) {{")
    t.emit("begin:")
    t.emit(f"%columns = alloca [{COLUMNS} x {VECTOR}], align 64")
    t.emit(f"%b = alloca [{COLUMNS * MAX_DEPTH} x float], align 64")
    t.emit(f"%b.exponents = alloca [{COLUMNS * MAX_DEPTH} x i32], align 64")
    words, ordinary_c = _transpose_accumulators(t)
    ordinary = _unpack_columns(t, kind, ordinary_c)
    if kind.is_integer:
        t.emit("br label %block.begin")
    else:
        a = t.value(f"load i64, ptr {t.place('%a', _IS_ORDINARY_AT)}")
        both = t.value(f"and i1 {ordinary}, {t.value(f'icmp ne i64 {a}, 0')}")
        t.emit(f"br i1 {both}, label %block.begin, label %wide.begin")
    for name, columns, type_ in (("block", BLOCK, "float"), ("wide", 1, "double")):
        if kind.is_integer and name == "wide":
            continue
        t.emit(f"{name}.begin:", f"br label %{name}")
        t.emit(f"{name}:", f"%{name}.k = phi i64 [0, %{name}.begin], [%{name}.next, %{name}.end]")
        c_at = t.place("%columns", f"%{name}.k", size=columns * _ROW_BYTES)
        at = [t.place(c_at, i * _ROW_BYTES) for i in range(columns)]
        before = [t.value(f"load {VECTOR}, ptr {x}, align 64") for x in at]
        if kind.is_integer:
            after = _add_integers(t, kind, name, before)
        else:
            after = _add_floats(t, kind, name, before, type_)
        for place, x in zip(at, after, strict=True):
            t.emit(f"store {VECTOR} {x}, ptr {place}, align 64")
        t.emit(f"br label %{name}.end", f"{name}.end:", f"%{name}.next = add i64 %{name}.k, 1")
        t.emit(f"%{name}.more = icmp ult i64 %{name}.next, {COLUMNS // columns}")
        t.emit(f"br i1 %{name}.more, label %{name}, label %end")
    t.emit("end:")
    _transpose_back(t, words)
    t.emit("ret void")
    return str(t)


def _transpose_accumulators(t: _Text) -> tuple[list[str], str]:
    """Put the accumulators into %columns; return where their four words lie, and whether they are
    in the range that floats allow."""
    words = [t.place("%d", 128 * word) for word in range(4)]
    loaded = [t.value(f"load <32 x float>, ptr {at}, align 4") for at in words]
    ordinary = "true"
    for column in range(COLUMNS):
        odd = column % 2
        lanes = [32 * (row // 8) + 4 * (row % 8) + column // 2 for row in range(ROWS)]
        c = t.value(
            f"shufflevector <32 x float> {loaded[odd]}, <32 x float> {loaded[2 + odd]}, "
            f"{_mask(lanes)}"
        )
        t.emit(f"store {VECTOR} {c}, ptr {t.place('%columns', _ROW_BYTES * column)}, align 64")
        bits = t.value(f"bitcast {VECTOR} {c} to {INTEGERS}")
        twice = t.value(f"shl {INTEGERS} {bits}, {_same(ROWS, 'i32', 1)}")
        # Where all products are zero, the bits of an accumulator count below its own exponent.
        least, bound = (
            exponent + _FLOAT_BIAS << _FLOAT_FRACTION + 1
            for exponent in (_LEAST_EXPONENT["float"], _ORDINARY_ACCUMULATOR)
        )
        above = t.value(f"sub {INTEGERS} {twice}, {_same(ROWS, 'i32', least)}")
        near = t.value(f"icmp ult {INTEGERS} {above}, {_same(ROWS, 'i32', bound - least)}")
        zero = t.value(f"icmp eq {INTEGERS} {twice}, zeroinitializer")
        either = t.value(f"or <{ROWS} x i1> {near}, {zero}")
        here = t.value(f"call i1 @llvm.vector.reduce.and.v{ROWS}i1(<{ROWS} x i1> {either})")
        ordinary = t.value(f"and i1 {ordinary}, {here}")
    return words, ordinary


def _transpose_back(t: _Text, words: Sequence[str]) -> None:
    places = [t.place("%columns", _ROW_BYTES * column) for column in range(COLUMNS)]
    results = [t.value(f"load {VECTOR}, ptr {at}, align 64") for at in places]
    wide = "<32 x float>"
    for word, at in enumerate(words):
        ours = [c for column, c in enumerate(results) if column % 2 == word % 2]
        pairs = [
            t.value(f"shufflevector {VECTOR} {x}, {VECTOR} {y}, {_mask(range(32))}")
            for x, y in (ours[:2], ours[2:])
        ]
        lanes = [16 * column + 8 * (word // 2) + row for row in range(8) for column in range(4)]
        whole = t.value(f"shufflevector {wide} {pairs[0]}, {wide} {pairs[1]}, {_mask(lanes)}")
        t.emit(f"store {wide} {whole}, ptr {at}, align 4")


def _unpack_columns(t: _Text, kind: Kind, ordinary: str) -> str:
    """Put columns of B into %b, and their exponents into %b.exponents: [column][MAX_DEPTH].
    Returns whether they, too, are ordinary."""
    depth = kind.depth
    (ordinary,) = t.begin_loop("pair", "begin", [("i1", ordinary)])
    raw_at = t.place("%raw", "%pair.k", size=128)
    for column in range(COLUMNS):
        here = t.place(raw_at, 16 * column)
        raw = t.value(f"load <{depth} x {kind.element}>, ptr {here}, align 4")
        x = _converted(t, kind, depth, raw)
        offset = t.place("%b", "%pair.k", size=4 * depth)
        b_at = t.place(offset, 4 * MAX_DEPTH * column)
        t.emit(f"store <{depth} x float> {x}, ptr {b_at}, align 4")
        if kind.is_integer:
            continue
        exponents = _exponents(t, depth, x, kind.least_exponent)
        offset = t.place("%b.exponents", "%pair.k", size=4 * depth)
        at = t.place(offset, 4 * MAX_DEPTH * column)
        t.emit(f"store <{depth} x i32> {exponents}, ptr {at}, align 4")
        ordinary = t.value(f"and i1 {ordinary}, {_are_ordinary(t, depth, exponents)}")
    t.end_loop("pair", "%pairs", [ordinary], "unpacked")
    return ordinary


class _Operands:
    """Loads the elements of A and B at one depth after the other, in a loop over pairs."""

    def __init__(self, t: _Text, kind: Kind, loop: str, block: str, columns: int) -> None:
        self.t = t
        self._a = t.place("%a", f"%{loop}.k", size=kind.depth * _ROW_BYTES)
        self._columns = [f"{4 * MAX_DEPTH * column}" for column in range(columns)]
        self._b = {
            array: t.place(
                t.place(array, f"%{loop}.k", size=4 * kind.depth),
                f"%{block}.k",
                size=4 * MAX_DEPTH * columns,
            )
            for array in ("%b", "%b.exponents")
        }

    def rows(self, k: int, type_: str) -> str:
        base = _EXPONENTS_AT if type_ == "i32" else 0
        at = self.t.place(self._a, base + k * _ROW_BYTES)
        return self.t.value(f"load <{ROWS} x {type_}>, ptr {at}, align 4")

    def column(self, k: int, column: int, type_: str) -> str:
        """One number for all rows."""
        array = "%b.exponents" if type_ == "i32" else "%b"
        at = self.t.place(self._b[array], 4 * (MAX_DEPTH * column + k))
        return _splat(self.t, type_, self.t.value(f"load {type_}, ptr {at}"))


def _add_floats(t: _Text, kind: Kind, name: str, before: Sequence[str], type_: str) -> list[str]:
    """The accumulators of some columns behind a product. type_: in which it is computed."""
    columns = range(len(before))
    exponents = [_exponents(t, ROWS, c, 1 - _FLOAT_BIAS) for c in before]
    t.emit(f"br label %{name}.largest.begin", f"{name}.largest.begin:")
    loop = f"{name}.largest"
    largest = t.begin_loop(loop, f"{loop}.begin", [(INTEGERS, e) for e in exponents])
    operands = _Operands(t, kind, loop, name, len(before))
    for k in range(kind.depth):
        a = operands.rows(k, "i32")
        for i in columns:
            b = operands.column(k, i, "i32")
            largest[i] = _larger(t, ROWS, largest[i], t.value(f"add {INTEGERS} {a}, {b}"))
    t.end_loop(loop, "%pairs", largest, f"{name}.scale")
    least = _same(ROWS, "i32", _LEAST_EXPONENT[type_])
    bounded = [_larger(t, ROWS, x, least) for x in largest]
    fraction = _same(ROWS, "i32", FRACTION_BITS)
    ups = [t.value(f"sub {INTEGERS} {fraction}, {x}") for x in bounded]
    scales = [_power_of_two(t, up, type_) for up in ups]
    numbers = f"<{ROWS} x {type_}>"
    total = INTEGERS if type_ == "float" else numbers
    start = []
    for c, scale in zip(before, scales, strict=True):
        wide = c if type_ == "float" else t.value(f"fpext {VECTOR} {c} to {DOUBLES}")
        start.append(_cut(t, t.value(f"fmul {numbers} {wide}, {scale}"), type_))
    # Half of the products and the accumulator fit into an integer, all of them may not.
    sums = [(total, x) for x in (*start, *["zeroinitializer"] * len(before))]
    loop = f"{name}.add"
    t.emit(f"br label %{loop}.begin", f"{loop}.begin:")
    parts = t.begin_loop(loop, f"{loop}.begin", sums)
    operands = _Operands(t, kind, loop, name, len(before))
    for k in range(kind.depth):
        a = operands.rows(k, "float")
        if type_ == "double":
            a = t.value(f"fpext {VECTOR} {a} to {DOUBLES}")
        for i in columns:
            b = operands.column(k, i, "float")
            if type_ == "double":
                b = t.value(f"fpext {VECTOR} {b} to {DOUBLES}")
            product = t.value(f"fmul {numbers} {a}, {b}")
            cut = _cut(t, t.value(f"fmul {numbers} {product}, {scales[i]}"), type_)
            half = i + k % 2 * len(before)
            add = "add" if type_ == "float" else "fadd"
            parts[half] = t.value(f"{add} {total} {parts[half]}, {cut}")
    t.end_loop(loop, "%pairs", parts, f"{name}.round")
    after = []
    for i in columns:
        halves = parts[i], parts[i + len(before)]
        after.append(_rounded(t, halves, ups[i], type_))
    return after


def _rounded(t: _Text, halves: Sequence[str], up: str, type_: str) -> str:
    """The sum of two numbers, exact, cut off to the bits of a float, and scaled back."""
    if type_ == "float":
        halves = [t.value(f"sitofp {INTEGERS} {x} to {DOUBLES}") for x in halves]
    exact = t.value(f"fadd {DOUBLES} {halves[0]}, {halves[1]}")
    bits = t.value(f"bitcast {DOUBLES} {exact} to {LONGS}")
    dropped = _DOUBLE_FRACTION - _FLOAT_FRACTION
    kept = t.value(f"and {LONGS} {bits}, {_same(ROWS, 'i64', -(1 << dropped))}")
    number = t.value(f"bitcast {LONGS} {kept} to {DOUBLES}")
    down = _power_of_two(t, t.value(f"sub {INTEGERS} zeroinitializer, {up}"), "double")
    return t.value(f"fptrunc {DOUBLES} {t.value(f'fmul {DOUBLES} {number}, {down}')} to {VECTOR}")


def _cut(t: _Text, x: str, type_: str) -> str:
    """An integer, towards zero."""
    if type_ == "float":
        return t.value(f"fptosi {VECTOR} {x} to {INTEGERS}")
    return t.value(f"call {DOUBLES} @llvm.trunc.v{ROWS}f64({DOUBLES} {x})")


def _power_of_two(t: _Text, exponent: str, type_: str) -> str:
    if type_ == "float":
        biased = t.value(f"add {INTEGERS} {exponent}, {_same(ROWS, 'i32', _FLOAT_BIAS)}")
        bits = t.value(f"shl {INTEGERS} {biased}, {_same(ROWS, 'i32', _FLOAT_FRACTION)}")
        return t.value(f"bitcast {INTEGERS} {bits} to {VECTOR}")
    biased = t.value(f"add {INTEGERS} {exponent}, {_same(ROWS, 'i32', _DOUBLE_BIAS)}")
    extended = t.value(f"zext {INTEGERS} {biased} to {LONGS}")
    bits = t.value(f"shl {LONGS} {extended}, {_same(ROWS, 'i64', _DOUBLE_FRACTION)}")
    return t.value(f"bitcast {LONGS} {bits} to {DOUBLES}")


def _add_integers(t: _Text, kind: Kind, name: str, before: Sequence[str]) -> list[str]:
    """Products are added to the accumulators as integers: these wrap, or saturate. The sums of the
    products are exact in float."""
    columns = range(len(before))
    loop = f"{name}.add"
    t.emit(f"br label %{loop}.begin", f"{loop}.begin:")
    sums = t.begin_loop(loop, f"{loop}.begin", [(VECTOR, "zeroinitializer") for _ in columns])
    operands = _Operands(t, kind, loop, name, len(before))
    for k in range(kind.depth):
        a = operands.rows(k, "float")
        for i in columns:
            given = f"{VECTOR} {a}, {VECTOR} {operands.column(k, i, 'float')}, {VECTOR} {sums[i]}"
            sums[i] = t.value(f"call {VECTOR} @llvm.fma.v{ROWS}f32({given})")
    t.end_loop(loop, "%pairs", sums, f"{name}.round")
    t.emit(f"%{name}.saturates = icmp ne i64 %saturates, 0")
    after = []
    for c, total in zip(before, sums, strict=True):
        whole = t.value(f"fptosi {VECTOR} {total} to {INTEGERS}")
        old = t.value(f"bitcast {VECTOR} {c} to {INTEGERS}")
        wrapped = t.value(f"add {INTEGERS} {old}, {whole}")
        given = f"{INTEGERS} {old}, {INTEGERS} {whole}"
        saturated = t.value(f"call {INTEGERS} @llvm.sadd.sat.v{ROWS}i32({given})")
        both = f"{INTEGERS} {saturated}, {INTEGERS} {wrapped}"
        result = t.value(f"select i1 %{name}.saturates, {both}")
        after.append(t.value(f"bitcast {INTEGERS} {result} to {VECTOR}"))
    return after


def _dispatcher(name: str, prefix: str, arguments: int) -> str:
    """`name(kind, …)` calls the function of that kind. Addresses come as numbers."""
    formal = ", ".join(f"i64 %a{i}" for i in range(arguments))
    t = _Text(f"define internal void @{name}(i64 %kind, {formal}) {{")
    pointers = arguments - 2  # and two numbers behind them
    for i in range(pointers):
        t.emit(f"%p{i} = inttoptr i64 %a{i} to ptr")
    given = [f"ptr %p{i}" for i in range(pointers)]
    given += [f"i64 %a{i}" for i in range(pointers, arguments)]
    cases = " ".join(f"i64 {i}, label %{kind.name}" for i, kind in enumerate(KINDS))
    t.emit(f"switch i64 %kind, label %other [{cases}]")
    for kind in KINDS:
        t.emit(f"{kind.name}:")
        t.emit(f"call void @{prefix}_{kind.name}({', '.join(given)})")
        t.emit("ret void")
    t.emit("other: ret void")
    return str(t)
