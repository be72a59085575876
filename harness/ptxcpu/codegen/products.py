"""Writes the products of tensor cores as LLVM vector code: the accumulators' words are the lanes.

Sums have the bits of Hopper's tensor cores. An instruction (mma.sync, wgmma) adds all its products
to an accumulator at once. Every product is exact. All summands are truncated (towards zero) below
2^-FRACTION_BITS of the largest one's exponent. The results are summed exactly, and the sum is
truncated to the 24 bits of a float. The exponent of a product is the sum of its factors' exponents,
which are not normalised; a zero has no exponent. tests/ptxcpu/test_tensor_core_sums.py
measures this on a GPU: an H200 gave the same bits for every form and every random operand. The
method is that of Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores"
(2021), and of Xie and others, "MMA-Sim" (2025).

Sixteen neighbouring lanes of a word of accumulators are four rows by four columns, every second
one. A is kept with each row four times, B with its columns in this order, so that a product is one
multiplication of vectors. Exponents are bytes, four of one row or column in a lane. AVX-512 has
registers for these vectors; on other processors, LLVM uses several.
"""

from collections.abc import Sequence
from dataclasses import dataclass

FRACTION_BITS = 25
"""The bits of a summand that are kept, below the exponent of the largest summand."""

COLUMNS, WORDS = 8, 4
"""The columns of a tile of 16 rows, and the words of its accumulators."""

STEPS = 16
"""The most steps of the depth: in a step, a lane has one float, or two 16-bit integers."""

GROUP = 4
"""Steps whose elements, 16 bytes of a row as floats, are unpacked at once."""

_NO_EXPONENT = -1000  # of a zero
_FLOAT_FRACTION, _FLOAT_BIAS = 23, 127
_DOUBLE_FRACTION, _DOUBLE_BIAS = 52, 1023
_ORDINARY = 40
"""Exponents of elements up to this leave all products, and the largest one in units of its last bit
that counts, in the range of a float. Products of others are computed as doubles."""

_ORDINARY_ACCUMULATORS = -2 * _ORDINARY, 100
"""The range of the exponents of ordinary accumulators; the second is too large."""

_ZERO_BYTE = -128
"""The exponent of an element that is zero: its products are below all others."""

_LEAST_EXPONENT = -500
"""The range of the largest summand's exponent for which the scaling factor is a double."""


@dataclass(frozen=True)
class Kind:
    """A type of elements.

    each: elements in a 32-bit register.
    least_exponent: the smallest exponent of a nonzero number; the hardware does not normalise.
    """

    name: str
    each: int
    least_exponent: int = 1 - _FLOAT_BIAS
    is_integer: bool = False

    @property
    def groups(self) -> int:
        """Groups of steps in 16 bytes, the part of a row that lies in one word of the lanes."""
        return 1 if self.each == 1 else 2

    @property
    def may_be_subnormal(self) -> bool:
        """Return whether an element other than zero may be a float with the exponent field zero."""
        return self.least_exponent == 1 - _FLOAT_BIAS


KINDS = (
    Kind("tf32", 1),
    Kind("f16", 2, -14),
    Kind("bf16", 2),
    Kind("s8", 4, is_integer=True),
    Kind("u8", 4, is_integer=True),
)
"""In the order of the runtime's `Kind`."""

LANES, ROWS = 16, 4
"""The lanes of a vector, and the rows that they are in."""

FLOATS, INTEGERS, BYTES = f"<{LANES} x float>", f"<{LANES} x i32>", f"<{4 * LANES} x i8>"
SHORTS, DOUBLES, LONGS = f"<{2 * LANES} x i16>", f"<{LANES} x double>", f"<{LANES} x i64>"
BITS, WIDE_INTEGERS = f"<{4 * LANES} x i1>", f"<{2 * LANES} x i32>"

_VECTOR_BYTES = 4 * LANES
_STEP_OF_A, _STEP_OF_B = 64 * 4, COLUMNS * 4
"""Bytes of a step: 16 rows, each four times; eight columns."""

# ---- The runtime's struct Rows: x[STEPS][64], exponents[STEPS / GROUP][64], is_ordinary

_EXPONENTS_AT = STEPS * _STEP_OF_A
_IS_ORDINARY_AT = _EXPONENTS_AT + STEPS // GROUP * _STEP_OF_A


def primitives() -> str:
    """The functions that the runtime calls, for every kind of elements."""
    parts = [
        f"declare {type_} @llvm.{name}.v{count}({type_}, {type_})"
        for name, type_, count in (
            ("smax", INTEGERS, "16i32"),
            ("umax", INTEGERS, "16i32"),
            ("umin", INTEGERS, "16i32"),
            ("sadd.sat", INTEGERS, "16i32"),
            ("smax", BYTES, "64i8"),
            ("umax", BYTES, "64i8"),
            ("sadd.sat", BYTES, "64i8"),
        )
    ]
    parts.append(f"declare {DOUBLES} @llvm.trunc.v16f64({DOUBLES})")
    parts.append(f"declare {INTEGERS} @llvm.ctlz.v16i32({INTEGERS}, i1)")
    parts += [_unpack(kind) for kind in KINDS]
    parts += [_multiply(kind) for kind in KINDS]
    parts.append(_dispatcher("host_unpack_rows", "unpack", 4))
    parts.append(_dispatcher("host_multiply", "multiply", 5))
    return "\n".join(parts)


class _Text:
    """The lines of a function, and names for its values."""

    def __init__(self, head: str) -> None:
        self.lines = [head, "begin:"]
        self._count = 0
        self._carried = 0  # the line of the first value of a loop

    def emit(self, *lines: str) -> None:
        self.lines += lines

    def value(self, text: str) -> str:
        self._count += 1
        self.emit(f"%v{self._count} = {text}")
        return f"%v{self._count}"

    def op(self, name: str, type_: str, a: str, b: str | int) -> str:
        """An operation on two vectors, or on a vector and a constant."""
        other = _same(type_, b) if isinstance(b, int) else b
        return self.value(f"{name} {type_} {a}, {other}")

    def call(self, name: str, type_: str, a: str, b: str | int) -> str:
        """An intrinsic function of two vectors."""
        count, _, element = type_.strip("<>").partition(" x ")
        other = _same(type_, b) if isinstance(b, int) else b
        return self.value(
            f"call {type_} @llvm.{name}.v{count}{element}({type_} {a}, {type_} {other})"
        )

    def cast(self, how: str, x: str, from_: str, to: str) -> str:
        return self.value(f"{how} {from_} {x} to {to}")

    def shuffle(self, type_: str, a: str, b: str, lanes: Sequence[int]) -> str:
        mask = ", ".join(f"i32 {lane}" for lane in lanes)
        return self.value(f"shufflevector {type_} {a}, {type_} {b}, <{len(lanes)} x i32> <{mask}>")

    def all(self, predicate: str, type_: str, a: str, b: int) -> str:
        """Return whether a comparison with a constant holds in all lanes."""
        count = type_.strip("<>").partition(" x ")[0]
        each = self.value(f"icmp {predicate} {type_} {a}, {_same(type_, b)}")
        bits = self.cast("bitcast", each, f"<{count} x i1>", f"i{count}")
        return self.value(f"icmp eq i{count} {bits}, -1")

    def load(self, type_: str, at: str) -> str:
        return self.value(f"load {type_}, ptr {at}, align 4")

    def store(self, type_: str, x: str, at: str) -> None:
        self.emit(f"store {type_} {x}, ptr {at}, align 4")

    def begin_loop(self, name: str, before: str, values: Sequence[tuple[str, str]]) -> list[str]:
        """Begin a loop over %NAME.k = 0, 1, ... with values of (type, first value)."""
        self.emit(f"br label %{name}", f"{name}:")
        self.emit(f"%{name}.k = phi i64 [0, %{before}], [%{name}.next, %{name}]")
        self._carried = len(self.lines)
        for i, (type_, first) in enumerate(values):
            self.emit(f"%{name}.{i} = phi {type_} [{first}, %{before}]")
        return [f"%{name}.{i}" for i in range(len(values))]

    def end_loop(self, name: str, count: str, values: Sequence[str], after: str) -> None:
        """End the loop. values: the loop's values in the next step."""
        for i, value in enumerate(values, self._carried):
            self.lines[i] += f", [{value}, %{name}]"
        self.emit(f"%{name}.next = add i64 %{name}.k, 1")
        self.emit(f"%{name}.more = icmp ult i64 %{name}.next, {count}")
        self.emit(f"br i1 %{name}.more, label %{name}, label %{after}", f"{after}:")

    def place(self, base: str, offset: str | int, size: int = 1) -> str:
        """The address of base plus an offset times a size in bytes."""
        return self.value(f"getelementptr [{size} x i8], ptr {base}, i64 {offset}")

    def __str__(self) -> str:
        return "\n".join([*self.lines, "}"])


def _same(type_: str, number: int) -> str:
    """A vector of equal constants."""
    count, _, element = type_.strip("<>").partition(" x ")
    return "<" + ", ".join([f"{element} {number}"] * int(count)) + ">"


# ---- elements: four rows (or columns) of 16 bytes become vectors of a group of steps of all four


def _elements(t: _Text, kind: Kind, at: str) -> list[str]:
    """The steps of four rows: for each group those of the first row, then those of the second, and
    so on. Floats, or integers of two 16-bit ones."""
    if kind.name == "tf32":  # tensor cores ignore the low bits
        bits = t.op("and", INTEGERS, t.load(INTEGERS, at), -8192)
        return [t.cast("bitcast", bits, INTEGERS, FLOATS)]
    if kind.is_integer:
        raw = t.load(BYTES, at)
        extend = "sext" if kind.name == "s8" else "zext"
        found = []
        for group in range(2):
            lanes = [row * 16 + group * 8 + i for row in range(ROWS) for i in range(8)]
            half = t.shuffle(BYTES, raw, "poison", lanes)
            whole = t.cast(extend, half, f"<{2 * LANES} x i8>", SHORTS)
            found.append(t.cast("bitcast", whole, SHORTS, INTEGERS))
        return found
    raw = t.load(SHORTS, at)
    found = []
    for group in range(2):
        lanes = [row * 8 + group * 4 + i for row in range(ROWS) for i in range(4)]
        if kind.name == "f16":
            half = t.shuffle(SHORTS, raw, "poison", lanes)
            numbers = t.cast("bitcast", half, f"<{LANES} x i16>", f"<{LANES} x half>")
            found.append(t.cast("fpext", numbers, f"<{LANES} x half>", FLOATS))
        else:  # the upper half of a float
            pairs = [x for lane in lanes for x in (0, 2 * LANES + lane)]
            whole = t.shuffle(SHORTS, "zeroinitializer", raw, pairs)
            found.append(t.cast("bitcast", whole, SHORTS, FLOATS))
    return found


# Of the elements so far: the largest exponent, counted from the smallest ordinary one; and the
# smallest element but zero, its bits doubled, less one. A subnormal one has less than a fraction.
_BOUNDS = ((BYTES, "zeroinitializer"), (INTEGERS, _same(INTEGERS, -1)))


def _exponent_fields(t: _Text, kind: Kind, x: str, bounds: list[str]) -> str:
    """The exponent fields of floats as bytes: each lane has the four of its row."""
    bits = t.cast("bitcast", x, FLOATS, INTEGERS)
    twice = t.op("shl", INTEGERS, bits, 1)
    if kind.may_be_subnormal:
        bounds[1] = t.call("umin", INTEGERS, bounds[1], t.op("add", INTEGERS, twice, -1))
    lanes = [row * 16 + 4 * i + 3 for row in range(ROWS) for _ in range(4) for i in range(4)]
    return t.shuffle(BYTES, t.cast("bitcast", twice, INTEGERS, BYTES), "poison", lanes)


def _exponents(t: _Text, kind: Kind, fields: str, bounds: list[str]) -> str:
    """The exponents of elements, as bytes; _ZERO_BYTE of zeros."""
    zero = t.value(f"icmp eq {BYTES} {fields}, zeroinitializer")
    bounded = fields
    if not kind.may_be_subnormal:
        bounded = t.call("umax", BYTES, fields, _as_byte(kind.least_exponent + _FLOAT_BIAS))
    exponents = t.op("sub", BYTES, bounded, _FLOAT_BIAS)
    above = t.op("add", BYTES, exponents, _ORDINARY)
    counts = t.value(f"select {BITS} {zero}, {BYTES} zeroinitializer, {BYTES} {above}")
    bounds[0] = t.call("umax", BYTES, bounds[0], counts)
    none = _same(BYTES, _ZERO_BYTE)
    return t.value(f"select {BITS} {zero}, {BYTES} {none}, {BYTES} {exponents}")


def _as_byte(number: int) -> int:
    return (number + 128) % 256 - 128


def _are_ordinary(t: _Text, largest: str, least: str) -> str:
    """Return whether all elements are zero, or their exponents at most _ORDINARY."""
    near = t.all("ule", BYTES, largest, 2 * _ORDINARY)
    normal = t.all("uge", INTEGERS, least, (2 << _FLOAT_FRACTION) - 1)
    return t.value(f"and i1 {near}, {normal}")


def _unpack(kind: Kind) -> str:
    """Rows of A: word 2p of all lanes has 8 rows, one after the other, of a part of their depth,
    word 2p+1 has the other 8."""
    given = "ptr %to, ptr %raw, i64 %pairs, i64 %minus"
    t = _Text(f"define internal void @unpack_{kind.name}({given}) {{")
    t.emit("%sign = icmp ne i64 %minus, 0")
    highest_bits = f"{INTEGERS} {_same(INTEGERS, -1 << 31)}"
    t.emit(f"%signs = select i1 %sign, {highest_bits}, {INTEGERS} zeroinitializer")
    bounds = t.begin_loop("pair", "begin", _BOUNDS)
    first = t.place("%to", "%pair.k", kind.groups * GROUP * _STEP_OF_A)
    exponents_at = t.place(t.place("%to", _EXPONENTS_AT), "%pair.k", kind.groups * _STEP_OF_A)
    raw_at = t.place("%raw", "%pair.k", 256)
    for rows in range(16 // ROWS):
        elements = _elements(t, kind, t.place(raw_at, _VECTOR_BYTES * rows))
        for group, x in enumerate(elements):
            bits = x
            if not kind.is_integer:
                exponents = _exponents(t, kind, _exponent_fields(t, kind, x, bounds), bounds)
                offset = group * _STEP_OF_A + rows * _VECTOR_BYTES
                t.store(BYTES, exponents, t.place(exponents_at, offset))
                bits = t.op("xor", INTEGERS, t.cast("bitcast", x, FLOATS, INTEGERS), "%signs")
            for step in range(GROUP):
                lanes = [4 * row + step for row in range(ROWS) for _ in range(4)]
                four_times = t.shuffle(INTEGERS, bits, "poison", lanes)
                at = (group * GROUP + step) * _STEP_OF_A + rows * _VECTOR_BYTES
                t.store(INTEGERS, four_times, t.place(first, at))
    t.end_loop("pair", "%pairs", bounds, "end")
    whole = t.value(f"zext i1 {_are_ordinary(t, bounds[0], bounds[1])} to i64")
    t.emit(f"store i64 {whole}, ptr {t.place('%to', _IS_ORDINARY_AT)}", "ret void")
    return str(t)


def _multiply(kind: Kind) -> str:
    """Add the product with 8 columns of B to four words of accumulators.

    Word p of B has, one after the other, of each column a part of its depth.
    """
    given = "ptr %d, ptr %a, ptr %raw, i64 %pairs, i64 %saturates"
    t = _Text(f"define internal void @multiply_{kind.name}({given}) {{")
    t.emit(f"%b = alloca [{STEPS * _STEP_OF_B} x i8], align 64")
    t.emit(f"%b.exponents = alloca [{STEPS // GROUP * _VECTOR_BYTES} x i8], align 64")
    t.emit(f"%groups = mul i64 %pairs, {kind.groups}")
    bounds = _unpack_columns(t, kind)
    if kind.is_integer:
        t.emit("br label %quarter.begin")
    else:
        ordinary = t.value(f"and i1 {_are_ordinary(t, *bounds)}, {_accumulators_are_ordinary(t)}")
        rows = t.value(f"load i64, ptr {t.place('%a', _IS_ORDINARY_AT)}")
        both = t.value(f"and i1 {ordinary}, {t.value(f'icmp ne i64 {rows}, 0')}")
        t.emit(f"br i1 {both}, label %quarter.begin, label %vector.begin")
    for name, count, add in (
        ("quarter", 4, _add_integers if kind.is_integer else _add_floats),
        ("vector", WORDS * 32 // LANES, _add_doubles),
    ):
        if kind.is_integer and name == "vector":
            continue
        t.emit(f"{name}.begin:", f"br label %{name}")
        t.emit(f"{name}:", f"%{name}.k = phi i64 [0, %{name}.begin], [%{name}.next, %{name}.end]")
        add(t, kind)
        t.emit(f"br label %{name}.end", f"{name}.end:", f"%{name}.next = add i64 %{name}.k, 1")
        t.emit(f"%{name}.more = icmp ult i64 %{name}.next, {count}")
        t.emit(f"br i1 %{name}.more, label %{name}, label %end")
    t.emit("end:", "ret void")
    return str(t)


def _unpack_columns(t: _Text, kind: Kind) -> list[str]:
    """Put columns of B into %b, and their exponents into %b.exponents: in each step the even
    columns, then the odd ones; exponents twice. Returns the bounds of the elements."""
    bounds = t.begin_loop("pair", "begin", _BOUNDS)
    raw_at = t.place("%raw", "%pair.k", 128)
    first = t.place("%b", "%pair.k", kind.groups * GROUP * _STEP_OF_B)
    exponents_at = t.place("%b.exponents", "%pair.k", kind.groups * _VECTOR_BYTES)
    columns = [_elements(t, kind, t.place(raw_at, i * _VECTOR_BYTES)) for i in range(2)]
    in_order = [0, 2, 4, 6, 1, 3, 5, 7]
    for group, (lower, upper) in enumerate(zip(*columns, strict=True)):
        type_ = INTEGERS if kind.is_integer else FLOATS
        for step in range(0, GROUP, 2):
            lanes = [4 * column + i for i in (step, step + 1) for column in in_order]
            two = t.shuffle(type_, lower, upper, lanes)
            t.store(type_, two, t.place(first, (group * GROUP + step) * _STEP_OF_B))
        if kind.is_integer:
            continue
        fields = [_exponent_fields(t, kind, x, bounds) for x in (lower, upper)]
        one, other = (t.cast("bitcast", x, BYTES, INTEGERS) for x in fields)
        twice = t.shuffle(INTEGERS, one, other, [4 * column for column in in_order] * 2)
        exponents = _exponents(t, kind, t.cast("bitcast", twice, INTEGERS, BYTES), bounds)
        t.store(BYTES, exponents, t.place(exponents_at, group * _VECTOR_BYTES))
    t.end_loop("pair", "%pairs", bounds, "unpacked")
    return bounds


def _accumulators_are_ordinary(t: _Text) -> str:
    """Return whether all accumulators are zero or in the range that floats allow."""
    largest, least = "zeroinitializer", _same(INTEGERS, -1)
    for i in range(WORDS * 32 // LANES):
        c = t.load(INTEGERS, t.place("%d", i * _VECTOR_BYTES))
        size = t.op("and", INTEGERS, c, (1 << 31) - 1)
        largest = t.call("umax", INTEGERS, largest, size)
        least = t.call("umin", INTEGERS, least, t.op("add", INTEGERS, size, -1))
    # Where all products are zero, the bits of an accumulator count below its own exponent.
    low, high = (x + _FLOAT_BIAS << _FLOAT_FRACTION for x in _ORDINARY_ACCUMULATORS)
    below = t.all("ult", INTEGERS, largest, high)
    return t.value(f"and i1 {below}, {t.all('uge', INTEGERS, least, low - 1)}")


_ROW_VECTORS = 1
"""Vectors of a quarter of the rows. More accumulators than they need have no room in registers."""


def _accumulators(t: _Text) -> list[str]:
    """Return the addresses of accumulators of a quarter of the rows, first of the even columns."""
    half = t.place("%d", t.value("lshr i64 %quarter.k, 1"), 256)
    first = t.place(half, t.value("and i64 %quarter.k, 1"), _ROW_VECTORS * _VECTOR_BYTES)
    offsets = [128 * odd + _VECTOR_BYTES * i for odd in range(2) for i in range(_ROW_VECTORS)]
    return [t.place(first, offset) for offset in offsets]


class _Operands:
    """Loads vectors of A and B at one step after the other, for a quarter of the rows."""

    def __init__(self, t: _Text, loop: str, a: str, b: str, steps: int, bytes_of_b: int) -> None:
        self.t = t
        quarter = t.place(a, "%quarter.k", _ROW_VECTORS * _VECTOR_BYTES)
        self._a = t.place(quarter, f"%{loop}.k", steps * _STEP_OF_A)
        self._b = t.place(b, f"%{loop}.k", bytes_of_b)

    def rows(self, step: int, vector: int, type_: str) -> str:
        at = self.t.place(self._a, step * _STEP_OF_A + vector * _VECTOR_BYTES)
        return self.t.load(type_, at)

    def columns(self, step: int, odd: int, type_: str) -> str:
        return _columns(self.t, self._b, step * _STEP_OF_B + 16 * odd, type_)


def _columns(t: _Text, base: str, offset: int | str, type_: str) -> str:
    """Four columns, for all rows of a vector."""
    count, _, element = type_.strip("<>").partition(" x ")
    one_row = f"<{int(count) // ROWS} x {element}>"
    four = t.load(one_row, t.place(base, offset))
    return t.shuffle(one_row, four, "poison", list(range(int(count) // ROWS)) * ROWS)


def _add_floats(t: _Text, kind: Kind) -> None:
    """Add to the accumulators of a quarter of the rows."""
    loop, places = "largest", _accumulators(t)
    t.emit("br label %largest.begin", "largest.begin:")
    # Products of zeros are not above any other.
    smallest = _same(BYTES, -2 * _ORDINARY - 8)
    largest = t.begin_loop(loop, "largest.begin", [(BYTES, smallest)] * len(places))
    operands = _Operands(t, loop, t.place("%a", _EXPONENTS_AT), "%b.exponents", 1, _VECTOR_BYTES)
    columns = [operands.columns(0, odd, BYTES) for odd in range(2)]
    for vector in range(_ROW_VECTORS):
        rows = operands.rows(0, vector, BYTES)
        for odd in range(2):
            i = vector + odd * _ROW_VECTORS
            exponent = t.call("sadd.sat", BYTES, rows, columns[odd])
            largest[i] = t.call("smax", BYTES, largest[i], exponent)
    t.end_loop(loop, "%groups", largest, "scale")
    fields, scales, starts = [], [], []
    for i, place in enumerate(places):
        c = t.load(INTEGERS, place)
        field = _largest_field(t, largest[i], c)
        up = t.op("sub", INTEGERS, _same(INTEGERS, 2 * _FLOAT_BIAS + FRACTION_BITS << 23), field)
        fields.append(field)
        scales.append(t.cast("bitcast", up, INTEGERS, FLOATS))
        scaled = t.op("fmul", FLOATS, t.cast("bitcast", c, INTEGERS, FLOATS), scales[i])
        starts.append(t.cast("fptosi", scaled, FLOATS, INTEGERS))
    # Eight products and the accumulator fit into an integer; of sixteen, the products alone do.
    apart = kind.groups == 2
    first = ["zeroinitializer"] * len(places) if apart else starts
    t.emit("br label %add.begin", "add.begin:")
    sums = t.begin_loop("add", "add.begin", [(INTEGERS, x) for x in first])
    operands = _Operands(t, "add", "%a", "%b", GROUP, GROUP * _STEP_OF_B)
    for step in range(GROUP):
        columns = [operands.columns(step, odd, FLOATS) for odd in range(2)]
        for vector in range(_ROW_VECTORS):
            rows = operands.rows(step, vector, FLOATS)
            for odd in range(2):
                i = vector + odd * _ROW_VECTORS
                product = t.op("fmul", FLOATS, rows, columns[odd])
                cut = t.cast("fptosi", t.op("fmul", FLOATS, product, scales[i]), FLOATS, INTEGERS)
                sums[i] = t.op("add", INTEGERS, sums[i], cut)
    t.end_loop("add", "%groups", sums, "round")
    for i, place in enumerate(places):
        down = t.op("sub", INTEGERS, fields[i], _same(INTEGERS, FRACTION_BITS << _FLOAT_FRACTION))
        total = _truncated_sum(t, sums[i], starts[i] if apart else "zeroinitializer")
        result = t.op("fmul", FLOATS, total, t.cast("bitcast", down, INTEGERS, FLOATS))
        t.store(FLOATS, result, place)


def _largest_field(t: _Text, exponents: str, c: str) -> str:
    """The exponent field, in its place in a float, of the largest of four exponents and c."""
    largest = exponents
    for distance in (16, 8):
        words = t.cast("bitcast", largest, BYTES, INTEGERS)
        moved = t.cast("bitcast", t.op("shl", INTEGERS, words, distance), INTEGERS, BYTES)
        largest = t.call("smax", BYTES, largest, moved)
    words = t.cast("bitcast", largest, BYTES, INTEGERS)
    in_place = t.op("ashr", INTEGERS, words, 1)  # below it are bits of the others
    field = t.op("add", INTEGERS, in_place, _FLOAT_BIAS << _FLOAT_FRACTION)
    size = t.op("and", INTEGERS, c, (1 << 31) - 1)
    return t.op("and", INTEGERS, t.call("smax", INTEGERS, field, size), 255 << _FLOAT_FRACTION)


def _truncated_sum(t: _Text, a: str, b: str) -> str:
    """The sums of integers as floats, cut off to their bits.

    The size of a sum fits into 32 bits; if its sign does not, both integers have that sign.
    """
    total = t.op("add", INTEGERS, a, b)
    either, both = t.op("or", INTEGERS, a, b), t.op("and", INTEGERS, a, b)
    majority = t.op("or", INTEGERS, both, t.op("and", INTEGERS, total, either))
    negative = t.op("ashr", INTEGERS, majority, 31)
    size = t.op("sub", INTEGERS, t.op("xor", INTEGERS, total, negative), negative)
    zeros = t.value(f"call {INTEGERS} @llvm.ctlz.v16i32({INTEGERS} {size}, i1 false)")
    excess = t.op("sub", INTEGERS, _same(INTEGERS, 31 - _FLOAT_FRACTION), zeros)
    dropped = t.call("smax", INTEGERS, excess, 0)
    kept = t.op("and", INTEGERS, size, t.op("shl", INTEGERS, _same(INTEGERS, -1), dropped))
    number = t.cast("bitcast", t.cast("uitofp", kept, INTEGERS, FLOATS), FLOATS, INTEGERS)
    signed = t.op("or", INTEGERS, number, t.op("and", INTEGERS, negative, -1 << 31))
    return t.cast("bitcast", signed, INTEGERS, FLOATS)


def _add_doubles(t: _Text, kind: Kind) -> None:
    """Add to one vector of accumulators, for elements of any size."""
    at = t.place("%d", "%vector.k", _VECTOR_BYTES)
    c = t.load(FLOATS, at)
    half, odd = t.value("lshr i64 %vector.k, 2"), t.value("lshr i64 %vector.k, 1")
    odd = t.value(f"and i64 {odd}, 1")
    in_half = t.value("and i64 %vector.k, 1")
    rows_at = t.place(t.place("%a", half, 2 * _VECTOR_BYTES), in_half, _VECTOR_BYTES)
    columns_at = t.place("%b", odd, 16)
    t.emit(f"%steps = mul i64 %groups, {GROUP}")

    def operands(loop: str) -> list[str]:
        rows = t.load(FLOATS, t.place(rows_at, f"%{loop}.k", _STEP_OF_A))
        return [rows, _columns(t, t.place(columns_at, f"%{loop}.k", _STEP_OF_B), 0, FLOATS)]

    first = _exponent(t, c, 1 - _FLOAT_BIAS)
    t.emit("br label %exponent.begin", "exponent.begin:")
    (largest,) = t.begin_loop("exponent", "exponent.begin", [(INTEGERS, first)])
    a, b = (_exponent(t, x, kind.least_exponent) for x in operands("exponent"))
    largest = t.call("smax", INTEGERS, largest, t.op("add", INTEGERS, a, b))
    t.end_loop("exponent", "%steps", [largest], "power")
    bounded = t.call("smax", INTEGERS, largest, _LEAST_EXPONENT)
    up = t.op("sub", INTEGERS, _same(INTEGERS, FRACTION_BITS), bounded)
    scale = _power_of_two(t, up)

    def cut(x: str) -> str:
        scaled = t.op("fmul", DOUBLES, x, scale)
        return t.value(f"call {DOUBLES} @llvm.trunc.v16f64({DOUBLES} {scaled})")

    start = cut(t.cast("fpext", c, FLOATS, DOUBLES))
    t.emit("br label %sum.begin", "sum.begin:")
    (total,) = t.begin_loop("sum", "sum.begin", [(DOUBLES, start)])
    a, b = (t.cast("fpext", x, FLOATS, DOUBLES) for x in operands("sum"))
    total = t.op("fadd", DOUBLES, total, cut(t.op("fmul", DOUBLES, a, b)))
    t.end_loop("sum", "%steps", [total], "sum.end")
    bits = t.cast("bitcast", total, DOUBLES, LONGS)
    kept = t.op("and", LONGS, bits, -(1 << _DOUBLE_FRACTION - _FLOAT_FRACTION))
    down = _power_of_two(t, t.op("sub", INTEGERS, "zeroinitializer", up))
    number = t.op("fmul", DOUBLES, t.cast("bitcast", kept, LONGS, DOUBLES), down)
    t.store(FLOATS, t.cast("fptrunc", number, DOUBLES, FLOATS), at)


def _exponent(t: _Text, x: str, least: int) -> str:
    """The exponents of floats, as 32-bit integers."""
    bits = t.cast("bitcast", x, FLOATS, INTEGERS)
    field = t.op("and", INTEGERS, t.op("lshr", INTEGERS, bits, _FLOAT_FRACTION), 255)
    bounded = t.call("smax", INTEGERS, t.op("sub", INTEGERS, field, _FLOAT_BIAS), least)
    zero = t.value(f"fcmp oeq {FLOATS} {x}, zeroinitializer")
    none = _same(INTEGERS, _NO_EXPONENT)
    return t.value(f"select <{LANES} x i1> {zero}, {INTEGERS} {none}, {INTEGERS} {bounded}")


def _power_of_two(t: _Text, exponent: str) -> str:
    biased = t.op("add", INTEGERS, exponent, _DOUBLE_BIAS)
    extended = t.cast("zext", biased, INTEGERS, LONGS)
    return t.cast("bitcast", t.op("shl", LONGS, extended, _DOUBLE_FRACTION), LONGS, DOUBLES)


def _add_integers(t: _Text, kind: Kind) -> None:
    """Add integers to the accumulators of a quarter of the rows; they wrap or saturate. The sums of
    the products fit into one."""
    places = _accumulators(t)
    t.emit("br label %add.begin", "add.begin:")
    sums = t.begin_loop("add", "add.begin", [(INTEGERS, "zeroinitializer")] * len(places))
    operands = _Operands(t, "add", "%a", "%b", GROUP, GROUP * _STEP_OF_B)
    for step in range(GROUP):
        columns = [operands.columns(step, odd, SHORTS) for odd in range(2)]
        for vector in range(_ROW_VECTORS):
            rows = operands.rows(step, vector, SHORTS)
            for odd in range(2):
                i = vector + odd * _ROW_VECTORS
                sums[i] = t.op("add", INTEGERS, sums[i], _pairs(t, rows, columns[odd]))
    t.end_loop("add", "%groups", sums, "round")
    t.emit("%saturate = icmp ne i64 %saturates, 0")
    for total, at in zip(sums, places, strict=True):
        old = t.load(INTEGERS, at)
        wrapped = t.op("add", INTEGERS, old, total)
        both = f"{INTEGERS} {t.call('sadd.sat', INTEGERS, old, total)}, {INTEGERS} {wrapped}"
        t.store(INTEGERS, t.value(f"select i1 %saturate, {both}"), at)


def _pairs(t: _Text, a: str, b: str) -> str:
    """Return sums of two products of 16-bit integers each."""
    wide = [t.cast("sext", x, SHORTS, WIDE_INTEGERS) for x in (a, b)]
    products = t.op("mul", WIDE_INTEGERS, *wide)
    halves = [
        t.shuffle(WIDE_INTEGERS, products, "poison", range(i, 2 * LANES, 2)) for i in range(2)
    ]
    return t.op("add", INTEGERS, *halves)


def _dispatcher(name: str, prefix: str, arguments: int) -> str:
    """Define `name(kind, …)`, which calls the function of that kind. Addresses are integers."""
    formal = ", ".join(f"i64 %a{i}" for i in range(arguments))
    t = _Text(f"define internal void @{name}(i64 %kind, {formal}) {{")
    pointers = arguments - 2  # and two numbers after them
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
