"""Writes the products of tensor cores as LLVM vector code: 16 rows of A at a time are the lanes.

What the accumulators keep is that of Hopper's tensor cores. An instruction adds several products
to an accumulator at once: every product is exact, all summands are cut off (towards zero) below
2^-FRACTION_BITS of the largest one's exponent, the rest is summed exactly, and the sum is cut off
to the 24 bits of a float. tests/ptxcpu/test_tensor_core_sums.py finds these numbers on a GPU. The
method is that of Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores"
(2021), and of Xie and others, "MMA-Sim" (2025).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FRACTION_BITS = 25
"""Bits of a summand that count, below the exponent of the largest summand."""

ROWS, COLUMNS, MAX_DEPTH = 16, 8, 32
_NO_EXPONENT = -1000  # of a zero
_LEAST_EXPONENT = -500  # keeps powers of two in a double's range
_FLOAT_FRACTION = 23
_DOUBLE_FRACTION, _DOUBLE_BIAS = 52, 1023


@dataclass(frozen=True)
class Kind:
    """A type of elements.

    each: elements in a 32-bit register.
    terms: products that are added to an accumulator at once; 0 for integers, whose sums are exact.
    least_exponent: of a number that is not zero, as the hardware sees it: it does not normalise.
    """

    name: str
    each: int
    terms: int
    least_exponent: int = -126

    @property
    def element(self) -> str:
        return f"i{32 // self.each}"


KINDS = (
    Kind("tf32", 1, 8),
    Kind("f16", 2, 16, -14),
    Kind("bf16", 2, 16),
    Kind("s8", 4, 0),
    Kind("u8", 4, 0),
)
"""In the order of the runtime's `Kind`."""


def primitives() -> str:
    """The functions that the runtime calls, for every kind of elements."""
    parts = ["declare <16 x i32> @llvm.smax.v16i32(<16 x i32>, <16 x i32>)"]
    for n in (8, 4):
        parts.append(f"declare <{n} x i32> @llvm.smax.v{n}i32(<{n} x i32>, <{n} x i32>)")
    parts.append("declare <16 x double> @llvm.trunc.v16f64(<16 x double>)")
    parts.append(
        "declare <16 x double> @llvm.fma.v16f64(<16 x double>, <16 x double>, <16 x double>)"
    )
    parts.append("declare <16 x i32> @llvm.sadd.sat.v16i32(<16 x i32>, <16 x i32>)")
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

    def emit(self, line: str) -> None:
        self.lines.append(line)

    def value(self, text: str) -> str:
        self._count += 1
        self.emit(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def loop_value(self, type_: str, before: str, entry: str, loop: str) -> tuple[str, int]:
        """A value that is `before` at first, and what `close` needs to go on with another."""
        self._count += 1
        self.emit(f"%v{self._count} = phi {type_} [{before}, %{entry}], [LATER, %{loop}]")
        return f"%v{self._count}", len(self.lines) - 1

    def close(self, line: int, later: str) -> None:
        self.lines[line] = self.lines[line].replace("LATER", later)

    def __str__(self) -> str:
        return "\n".join([*self.lines, "}"])


def _same(n: int, type_: str, number: str | int) -> str:
    """A vector of equal constants."""
    return "<" + ", ".join([f"{type_} {number}"] * n) + ">"


def _mask(lanes: Sequence[int]) -> str:
    return f"<{len(lanes)} x i32> <" + ", ".join(f"i32 {lane}" for lane in lanes) + ">"


def _converted(t: _Text, kind: Kind, n: int, raw: str) -> tuple[str, str]:
    """n elements as doubles, and their exponents."""
    wide, floats = f"<{n} x i32>", f"<{n} x float>"
    if kind.name in ("s8", "u8"):
        how = "sitofp" if kind.name == "s8" else "uitofp"
        return t.value(f"{how} <{n} x i8> {raw} to <{n} x double>"), _same(n, "i32", 0)
    if kind.name == "f16":
        halves = t.value(f"bitcast <{n} x i16> {raw} to <{n} x half>")
        x = t.value(f"fpext <{n} x half> {halves} to {floats}")
    else:
        if kind.name == "bf16":
            extended = t.value(f"zext <{n} x i16> {raw} to {wide}")
            bits = t.value(f"shl {wide} {extended}, {_same(n, 'i32', 16)}")
        else:  # tensor cores ignore the low bits
            bits = t.value(f"and {wide} {raw}, {_same(n, 'i32', -8192)}")
        x = t.value(f"bitcast {wide} {bits} to {floats}")
    doubles = t.value(f"fpext {floats} {x} to <{n} x double>")
    return doubles, _exponents(t, n, x, kind.least_exponent)


def _exponents(t: _Text, n: int, x: str, least: int) -> str:
    """Those of n floats."""
    wide = f"<{n} x i32>"
    bits = t.value(f"bitcast <{n} x float> {x} to {wide}")
    shifted = t.value(f"lshr {wide} {bits}, {_same(n, 'i32', _FLOAT_FRACTION)}")
    field = t.value(f"and {wide} {shifted}, {_same(n, 'i32', 255)}")
    exponent = t.value(f"sub {wide} {field}, {_same(n, 'i32', 127)}")
    bounded = _larger(t, n, exponent, _same(n, "i32", least))
    zero = t.value(f"fcmp oeq <{n} x float> {x}, zeroinitializer")
    none = _same(n, "i32", _NO_EXPONENT)
    return t.value(f"select <{n} x i1> {zero}, {wide} {none}, {wide} {bounded}")


def _larger(t: _Text, n: int, a: str, b: str) -> str:
    wide = f"<{n} x i32>"
    return t.value(f"call {wide} @llvm.smax.v{n}i32({wide} {a}, {wide} {b})")


# ---- struct Rows { double x[MAX_DEPTH][ROWS]; int exponent[MAX_DEPTH][ROWS]; }

_EXPONENTS_AT = 8 * MAX_DEPTH * ROWS


def _unpack(kind: Kind) -> str:
    """Rows of A: word 2p of all lanes has 8 rows, one after the other, of a part of their depth,
    word 2p+1 has the other 8."""
    depth = 4 * kind.each
    t = _Text(
        f"define internal void @unpack_{kind.name}(ptr %to, ptr %raw, i64 %pairs, i64 %minus) {{"
    )
    t.emit("%sign.bit = icmp ne i64 %minus, 0")
    t.emit("%sign = select i1 %sign.bit, double -1.0, double 1.0")
    t.emit(f"%sign.one = insertelement <{ROWS} x double> poison, double %sign, i32 0")
    t.emit(
        f"%signs = shufflevector <{ROWS} x double> %sign.one, <{ROWS} x double> poison, "
        f"<{ROWS} x i32> zeroinitializer"
    )
    t.emit("br label %loop")
    t.emit("loop: %pair = phi i64 [0, %0], [%next, %loop]")
    half = f"<{8 * depth} x {kind.element}>"
    at = t.value("mul i64 %pair, 256")
    upper_at = t.value(f"getelementptr i8, ptr %raw, i64 {at}")
    lower_at = t.value(f"getelementptr i8, ptr {upper_at}, i64 128")
    upper = t.value(f"load {half}, ptr {upper_at}, align 4")
    lower = t.value(f"load {half}, ptr {lower_at}, align 4")
    first = t.value(f"mul i64 %pair, {depth * ROWS}")
    for k in range(depth):
        lanes = [row * depth + k for row in range(ROWS)]
        raw = t.value(f"shufflevector {half} {upper}, {half} {lower}, {_mask(lanes)}")
        x, exponent = _converted(t, kind, ROWS, raw)
        signed = t.value(f"fmul <{ROWS} x double> {x}, %signs")
        place = t.value(f"add i64 {first}, {k * ROWS}")
        x_at = t.value(f"getelementptr double, ptr %to, i64 {place}")
        t.emit(f"store <{ROWS} x double> {signed}, ptr {x_at}, align 8")
        exponents = t.value(f"getelementptr i8, ptr %to, i64 {_EXPONENTS_AT}")
        e_at = t.value(f"getelementptr i32, ptr {exponents}, i64 {place}")
        t.emit(f"store <{ROWS} x i32> {exponent}, ptr {e_at}, align 4")
    t.emit("%next = add i64 %pair, 1")
    t.emit("%more = icmp ult i64 %next, %pairs")
    t.emit("br i1 %more, label %loop, label %end")
    t.emit("end: ret void")
    return str(t)


def _accumulator_lanes(column: int) -> list[int]:
    """Where a column's 16 rows lie in two words of accumulators, of 8 rows each."""
    return [32 * (row // 8) + 4 * (row % 8) + column // 2 for row in range(ROWS)]


def _multiply(kind: Kind) -> str:
    """Add the product with 8 columns of B to four words of accumulators.

    Word p of B has, one after the other, of each column a part of its depth.
    """
    t = _Text(
        f"define internal void @multiply_{kind.name}"
        "(ptr %d, ptr %a, ptr %raw, i64 %pairs, i64 %saturates) {"
    )
    t.emit(f"%columns = alloca [{COLUMNS} x <{ROWS} x float>], align 64")
    t.emit(f"%b = alloca [{MAX_DEPTH} x double], align 64")
    t.emit(f"%be = alloca [{MAX_DEPTH} x i32], align 64")
    words = _transpose_accumulators(t)
    t.emit("br label %column.loop")
    t.emit("column.loop:")
    t.emit("%column = phi i64 [0, %0], [%next, %column.end]")
    t.emit(f"%at = getelementptr <{ROWS} x float>, ptr %columns, i64 %column")
    t.emit(f"%before = load <{ROWS} x float>, ptr %at, align 64")
    _unpack_column(t, kind)
    t.emit("sum:")
    _sum_integers(t, kind) if not kind.terms else _sum_floats(t, kind)
    t.emit("column.end:")
    t.emit("%next = add i64 %column, 1")
    t.emit(f"%more = icmp ult i64 %next, {COLUMNS}")
    t.emit("br i1 %more, label %column.loop, label %end")
    t.emit("end:")
    _transpose_back(t, words)
    t.emit("ret void")
    return str(t)


def _transpose_accumulators(t: _Text) -> list[str]:
    """Put the accumulators into %columns; return where their four words lie."""
    words, loaded = [], []
    for word in range(4):
        at = t.value(f"getelementptr i8, ptr %d, i64 {128 * word}")
        words.append(at)
        loaded.append(t.value(f"load <32 x float>, ptr {at}, align 4"))
    for column in range(COLUMNS):
        odd = column % 2
        c = t.value(
            f"shufflevector <32 x float> {loaded[odd]}, <32 x float> {loaded[2 + odd]}, "
            f"{_mask(_accumulator_lanes(column))}"
        )
        at = t.value(f"getelementptr i8, ptr %columns, i64 {4 * ROWS * column}")
        t.emit(f"store <{ROWS} x float> {c}, ptr {at}, align 64")
    return words


def _transpose_back(t: _Text, words: Sequence[str]) -> None:
    results = []
    for column in range(COLUMNS):
        at = t.value(f"getelementptr i8, ptr %columns, i64 {4 * ROWS * column}")
        results.append(t.value(f"load <{ROWS} x float>, ptr {at}, align 64"))
    for word, at in enumerate(words):
        ours = [c for column, c in enumerate(results) if column % 2 == word % 2]
        pairs = [
            t.value(
                f"shufflevector <16 x float> {ours[i]}, <16 x float> {ours[i + 1]}, "
                f"{_mask(range(32))}"
            )
            for i in (0, 2)
        ]
        first = 8 * (word // 2)
        lanes = [16 * column + first + row for row in range(8) for column in range(4)]
        whole = t.value(
            f"shufflevector <32 x float> {pairs[0]}, <32 x float> {pairs[1]}, {_mask(lanes)}"
        )
        t.emit(f"store <32 x float> {whole}, ptr {at}, align 4")


def _unpack_column(t: _Text, kind: Kind) -> None:
    """Put a column of B into %b, and its exponents into %be."""
    depth = 4 * kind.each
    t.emit("%byte = mul i64 %column, 16")
    t.emit("br label %unpack")
    t.emit("unpack:")
    t.emit("%pair = phi i64 [0, %column.loop], [%next.pair, %unpack]")
    skipped = t.value("mul i64 %pair, 128")
    from_ = t.value(f"add i64 {skipped}, %byte")
    raw_at = t.value(f"getelementptr i8, ptr %raw, i64 {from_}")
    raw = t.value(f"load <{depth} x {kind.element}>, ptr {raw_at}, align 4")
    x, exponent = _converted(t, kind, depth, raw)
    place = t.value(f"mul i64 %pair, {depth}")
    b_at = t.value(f"getelementptr double, ptr %b, i64 {place}")
    t.emit(f"store <{depth} x double> {x}, ptr {b_at}, align 8")
    if kind.terms:
        be_at = t.value(f"getelementptr i32, ptr %be, i64 {place}")
        t.emit(f"store <{depth} x i32> {exponent}, ptr {be_at}, align 4")
    t.emit("%next.pair = add i64 %pair, 1")
    t.emit("%more.pairs = icmp ult i64 %next.pair, %pairs")
    t.emit("br i1 %more.pairs, label %unpack, label %sum")


def _row_values(t: _Text, k: int, type_: str, pointer: str, base: int) -> str:
    """Sixteen values of A at one depth, behind %first."""
    at = t.value(f"getelementptr i8, ptr %a, i64 {base}")
    moved = t.value(f"getelementptr <{ROWS} x {type_}>, ptr {at}, i64 {pointer}")
    here = t.value(f"getelementptr <{ROWS} x {type_}>, ptr {moved}, i64 {k}")
    return t.value(f"load <{ROWS} x {type_}>, ptr {here}, align 4")


def _column_value(t: _Text, k: int, type_: str, array: str, pointer: str) -> str:
    """One value of B at one depth, for all rows."""
    moved = t.value(f"getelementptr {type_}, ptr {array}, i64 {pointer}")
    at = t.value(f"getelementptr {type_}, ptr {moved}, i64 {k}")
    x = t.value(f"load {type_}, ptr {at}")
    one = t.value(f"insertelement <{ROWS} x {type_}> poison, {type_} {x}, i32 0")
    return t.value(
        f"shufflevector <{ROWS} x {type_}> {one}, <{ROWS} x {type_}> poison, "
        f"<{ROWS} x i32> zeroinitializer"
    )


def _sum_floats(t: _Text, kind: Kind) -> None:
    """Add to the accumulators of a column as many products at once as the hardware does, or all
    if the instruction has fewer."""
    doubles, wide = f"<{ROWS} x double>", f"<{ROWS} x i32>"
    pair = 4 * kind.each
    t.emit(f"%depth = mul i64 %pairs, {pair}")
    t.emit("br label %step")
    t.emit("step:")
    t.emit("%first = phi i64 [0, %sum], [%next.first, %step.end]")
    t.emit(f"%c = phi <{ROWS} x float> [%before, %sum], [%after, %step.end]")
    c_exponent = _exponents(t, ROWS, "%c", -126)
    largest = _largest_exponent(t, kind, c_exponent)
    t.emit("scales:")
    bounded = _larger(t, ROWS, largest, _same(ROWS, "i32", _LEAST_EXPONENT))
    up = t.value(f"sub {wide} {_same(ROWS, 'i32', FRACTION_BITS)}, {bounded}")
    down = t.value(f"sub {wide} zeroinitializer, {up}")
    scale, back = (_power_of_two(t, exponent) for exponent in (up, down))
    c_wide = t.value(f"fpext <{ROWS} x float> %c to {doubles}")
    start = _cut(t, t.value(f"fmul {doubles} {c_wide}, {scale}"))
    t.emit("br label %add")
    t.emit("add:")
    t.emit("%k2 = phi i64 [%first, %scales], [%next.k2, %add]")
    total, again = t.loop_value(doubles, start, "scales", "add")
    for k in range(pair):
        a = _row_values(t, k, "double", "%k2", 0)
        b = _column_value(t, k, "double", "%b", "%k2")
        product = t.value(f"fmul {doubles} {a}, {b}")
        scaled = t.value(f"fmul {doubles} {product}, {scale}")
        total = t.value(f"fadd {doubles} {total}, {_cut(t, scaled)}")
    t.close(again, total)
    t.emit(f"%next.k2 = add i64 %k2, {pair}")
    t.emit("%more.k2 = icmp ult i64 %next.k2, %end.k")
    t.emit("br i1 %more.k2, label %add, label %step.end")
    t.emit("step.end:")
    longs = f"<{ROWS} x i64>"
    bits = t.value(f"bitcast {doubles} {total} to {longs}")
    dropped = _DOUBLE_FRACTION - _FLOAT_FRACTION
    kept = t.value(f"and {longs} {bits}, {_same(ROWS, 'i64', -(1 << dropped))}")
    number = t.value(f"bitcast {longs} {kept} to {doubles}")
    result = t.value(f"fmul {doubles} {number}, {back}")
    t.emit(f"%after = fptrunc {doubles} {result} to <{ROWS} x float>")
    t.emit(f"%next.first = add i64 %first, {kind.terms}")
    t.emit("%more.steps = icmp ult i64 %next.first, %depth")
    t.emit("br i1 %more.steps, label %step, label %sum.end")
    t.emit("sum.end:")
    t.emit(f"store <{ROWS} x float> %after, ptr %at, align 64")
    t.emit("br label %column.end")


def _largest_exponent(t: _Text, kind: Kind, of_accumulator: str) -> str:
    """That of the summands, and in %end.k where they end."""
    wide, pair = f"<{ROWS} x i32>", 4 * kind.each
    t.emit("br label %largest")
    t.emit("largest:")
    t.emit("%k1 = phi i64 [%first, %step], [%next.k1, %largest]")
    largest, again = t.loop_value(wide, of_accumulator, "step", "largest")
    for k in range(pair):
        a = _row_values(t, k, "i32", "%k1", _EXPONENTS_AT)
        b = _column_value(t, k, "i32", "%be", "%k1")
        largest = _larger(t, ROWS, largest, t.value(f"add {wide} {a}, {b}"))
    t.close(again, largest)
    t.emit(f"%next.k1 = add i64 %k1, {pair}")
    t.emit(f"%end.of.step = add i64 %first, {kind.terms}")
    t.emit("%is.over = icmp ult i64 %depth, %end.of.step")
    t.emit("%end.k = select i1 %is.over, i64 %depth, i64 %end.of.step")
    t.emit("%more.k1 = icmp ult i64 %next.k1, %end.k")
    t.emit("br i1 %more.k1, label %largest, label %scales")
    return largest


def _cut(t: _Text, x: str) -> str:
    doubles = f"<{ROWS} x double>"
    return t.value(f"call {doubles} @llvm.trunc.v{ROWS}f64({doubles} {x})")


def _power_of_two(t: _Text, exponent: str) -> str:
    longs = f"<{ROWS} x i64>"
    biased = t.value(f"add <{ROWS} x i32> {exponent}, {_same(ROWS, 'i32', _DOUBLE_BIAS)}")
    extended = t.value(f"zext <{ROWS} x i32> {biased} to {longs}")
    bits = t.value(f"shl {longs} {extended}, {_same(ROWS, 'i64', _DOUBLE_FRACTION)}")
    return t.value(f"bitcast {longs} {bits} to <{ROWS} x double>")


def _sum_integers(t: _Text, kind: Kind) -> None:
    """Products are added to the accumulators as integers: these wrap, or saturate."""
    doubles, wide = f"<{ROWS} x double>", f"<{ROWS} x i32>"
    pair = 4 * kind.each
    t.emit(f"%depth = mul i64 %pairs, {pair}")
    t.emit("br label %add")
    t.emit("add:")
    t.emit("%k = phi i64 [0, %sum], [%next.k, %add]")
    total, again = t.loop_value(doubles, "zeroinitializer", "sum", "add")
    for k in range(pair):
        a = _row_values(t, k, "double", "%k", 0)
        b = _column_value(t, k, "double", "%b", "%k")
        given = f"{doubles} {a}, {doubles} {b}, {doubles} {total}"
        total = t.value(f"call {doubles} @llvm.fma.v{ROWS}f64({given})")
    t.close(again, total)
    t.emit(f"%next.k = add i64 %k, {pair}")
    t.emit("%more.k = icmp ult i64 %next.k, %depth")
    t.emit("br i1 %more.k, label %add, label %sum.end")
    t.emit("sum.end:")
    whole = t.value(f"fptosi {doubles} {total} to {wide}")
    c = t.value(f"bitcast <{ROWS} x float> %before to {wide}")
    wrapped = t.value(f"add {wide} {c}, {whole}")
    saturated = t.value(f"call {wide} @llvm.sadd.sat.v{ROWS}i32({wide} {c}, {wide} {whole})")
    t.emit("%is.saturated = icmp ne i64 %saturates, 0")
    result = t.value(f"select i1 %is.saturated, {wide} {saturated}, {wide} {wrapped}")
    t.emit(f"store {wide} {result}, ptr %at, align 64")
    t.emit("br label %column.end")


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
