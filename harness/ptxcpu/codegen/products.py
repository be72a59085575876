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

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.ptxcpu.codegen.llvm_ir import FALSE, Builder, IrValue, constant, with_elements

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

_VECTOR_BYTES = 4 * LANES
_STEP_OF_A, _STEP_OF_B = 64 * 4, COLUMNS * 4
"""Bytes of a step: 16 rows, each four times; eight columns."""

# ---- The runtime's struct Rows: x[STEPS][64], exponents[STEPS / GROUP][64], is_ordinary

_EXPONENTS_AT = STEPS * _STEP_OF_A
_IS_ORDINARY_AT = _EXPONENTS_AT + STEPS // GROUP * _STEP_OF_A


def primitives() -> tuple[list[str], set[str]]:
    """Return the functions that the runtime calls, for every kind of elements, and the declarations
    of the functions that they call."""
    functions = [_unpack(kind) for kind in KINDS] + [_multiply(kind) for kind in KINDS]
    functions += [
        _dispatcher("host_unpack_rows", "unpack", 4),
        _dispatcher("host_multiply", "multiply", 5),
    ]
    declarations = set().union(*(function.declarations for function in functions))
    return [function.text() for function in functions], declarations


def _zero(type_: str) -> IrValue:
    return IrValue("zeroinitializer", type_)


class _Function(Builder):
    """A function, and loops in it."""

    def __init__(self, name: str, given: str) -> None:
        super().__init__()
        self.lines += [f"define internal void @{name}({given}) {{", "begin:"]
        self._carried = 0
        """The line of the first value of a loop."""

    def text(self) -> str:
        return "\n".join([*self.lines, "}"])

    def all(self, predicate: str, a: IrValue, b: int) -> IrValue:
        """Return whether a comparison with a constant holds in all lanes."""
        bits = with_elements(a.type, "i1")
        each = self.value(bits, f"icmp {predicate} {a}, {constant(a.type, b).text}")
        return self.compare("eq", self.bitcast(each, f"i{bits[1:].split(' ')[0]}"), -1)

    def choose(self, is_zero: IrValue, a: IrValue, b: IrValue) -> IrValue:
        """Return a in the lanes where a predicate holds, and b in the others."""
        return self.value(a.type, f"select {is_zero}, {a}, {b}")

    def begin_loop(self, name: str, firsts: Sequence[IrValue]) -> tuple[IrValue, list[IrValue]]:
        """Begin a loop. Return the number of the step, and the values that it carries, which have
        these values in the first step."""
        before, k = f"{name}.begin", IrValue(f"%{name}.k", "i64")
        self.jump(before)
        self.place(before)
        self.jump(name)
        self.place(name)
        self.emit(f"{k.text} = phi i64 [0, %{before}], [%{name}.next, %{name}.end]")
        self._carried = len(self.lines)
        values = [IrValue(f"%{name}.{i}", first.type) for i, first in enumerate(firsts)]
        for value, first in zip(values, firsts, strict=True):
            self.emit(f"{value.text} = phi {value.type} [{first.text}, %{before}]")
        return k, values

    def end_loop(self, name: str, count: IrValue | int, values: Sequence[IrValue] = ()) -> None:
        """End the loop. values: the values that it carries into the next step. After its end, they
        are those of the last step."""
        for i, value in enumerate(values, self._carried):
            self.lines[i] += f", [{value.text}, %{name}.end]"
        self.jump(f"{name}.end")
        self.place(f"{name}.end")
        self.emit(f"%{name}.next = add i64 %{name}.k, 1")
        more = self.compare("ult", IrValue(f"%{name}.next", "i64"), count)
        self.branch(more, name, f"{name}.over")
        self.place(f"{name}.over")

    def places(self, base: IrValue, number: IrValue, size: int) -> IrValue:
        """Return the address of an element of this size in an array."""
        return self.offset(base, number, f"[{size} x i8]")

    def load(self, type_: str, pointer: IrValue, attributes: str = ", align 4") -> IrValue:
        return super().load(type_, pointer, attributes)

    def store(self, a: IrValue, pointer: IrValue, attributes: str = ", align 4") -> None:
        super().store(a, pointer, attributes)


# ---- elements: four rows (or columns) of 16 bytes become vectors of a group of steps of all four


def _elements(t: _Function, kind: Kind, at: IrValue) -> list[IrValue]:
    """Return the steps of four rows: for each group those of the first row, then those of the
    second, and so on. Floats, or integers of two 16-bit ones."""
    if kind.name == "tf32":  # tensor cores ignore the low bits
        return [t.bitcast(t.op("and", t.load(INTEGERS, at), -8192), FLOATS)]
    raw = t.load(BYTES if kind.is_integer else SHORTS, at)
    row_size = 16 if kind.is_integer else 8
    found = []
    for first in (0, row_size // 2):
        lanes = [row * row_size + first + i for row in range(ROWS) for i in range(row_size // 2)]
        if kind.is_integer:
            extend = "sext" if kind.name == "s8" else "zext"
            whole = t.convert(extend, t.shuffle(raw, None, lanes), SHORTS)
            found.append(t.bitcast(whole, INTEGERS))
        elif kind.name == "f16":
            halves = t.bitcast(t.shuffle(raw, None, lanes), f"<{LANES} x half>")
            found.append(t.convert("fpext", halves, FLOATS))
        else:  # the upper half of a float
            pairs = [x for lane in lanes for x in (0, 2 * LANES + lane)]
            found.append(t.bitcast(t.shuffle(_zero(SHORTS), raw, pairs), FLOATS))
    return found


# Of the elements so far: the largest exponent, counted from the smallest ordinary one; and the
# smallest element but zero, its bits doubled, less one. A subnormal one has less than a fraction.
_BOUNDS = (_zero(BYTES), constant(INTEGERS, -1))


def _exponent_fields(t: _Function, kind: Kind, x: IrValue, bounds: list[IrValue]) -> IrValue:
    """Return the exponent fields of floats as bytes: each lane has the four of its row."""
    twice = t.op("shl", t.bitcast(x, INTEGERS), 1)
    if kind.may_be_subnormal:
        bounds[1] = t.intrinsic("umin", bounds[1], t.op("add", twice, -1))
    lanes = [row * 16 + 4 * i + 3 for row in range(ROWS) for _ in range(4) for i in range(4)]
    return t.shuffle(t.bitcast(twice, BYTES), None, lanes)


def _exponents(t: _Function, kind: Kind, fields: IrValue, bounds: list[IrValue]) -> IrValue:
    """Return the exponents of elements, as bytes; _ZERO_BYTE of zeros."""
    is_zero = t.value(with_elements(BYTES, "i1"), f"icmp eq {fields}, zeroinitializer")
    bounded = fields
    if not kind.may_be_subnormal:
        least = constant(BYTES, kind.least_exponent + _FLOAT_BIAS)
        bounded = t.intrinsic("umax", fields, least)
    exponents = t.op("sub", bounded, _FLOAT_BIAS)
    counts = t.choose(is_zero, _zero(BYTES), t.op("add", exponents, _ORDINARY))
    bounds[0] = t.intrinsic("umax", bounds[0], counts)
    return t.choose(is_zero, constant(BYTES, _ZERO_BYTE), exponents)


def _are_ordinary(t: _Function, largest: IrValue, least: IrValue) -> IrValue:
    """Return whether all elements are zero, or their exponents at most _ORDINARY."""
    near = t.all("ule", largest, 2 * _ORDINARY)
    return t.op("and", near, t.all("uge", least, (2 << _FLOAT_FRACTION) - 1))


def _unpack(kind: Kind) -> _Function:
    """Rows of A: word 2p of all lanes has 8 rows, one after the other, of a part of their depth,
    word 2p+1 has the other 8."""
    t = _Function(f"unpack_{kind.name}", "ptr %to, ptr %raw, i64 %pairs, i64 %minus")
    to, pairs = IrValue("%to", "ptr"), IrValue("%pairs", "i64")
    sign = t.compare("ne", IrValue("%minus", "i64"), 0)
    signs = t.select(sign, constant(INTEGERS, 1 << 31), _zero(INTEGERS))
    pair, bounds = t.begin_loop("pair", _BOUNDS)
    first = t.places(to, pair, kind.groups * GROUP * _STEP_OF_A)
    exponents_at = t.places(t.offset(to, _EXPONENTS_AT), pair, kind.groups * _STEP_OF_A)
    raw_at = t.places(IrValue("%raw", "ptr"), pair, 256)
    for rows in range(16 // ROWS):
        elements = _elements(t, kind, t.offset(raw_at, _VECTOR_BYTES * rows))
        for group, x in enumerate(elements):
            bits = x
            if not kind.is_integer:
                exponents = _exponents(t, kind, _exponent_fields(t, kind, x, bounds), bounds)
                at = group * _STEP_OF_A + rows * _VECTOR_BYTES
                t.store(exponents, t.offset(exponents_at, at))
                bits = t.op("xor", t.bitcast(x, INTEGERS), signs)
            for step in range(GROUP):
                lanes = [4 * row + step for row in range(ROWS) for _ in range(4)]
                at = (group * GROUP + step) * _STEP_OF_A + rows * _VECTOR_BYTES
                t.store(t.shuffle(bits, None, lanes), t.offset(first, at))
    t.end_loop("pair", pairs, bounds)
    is_ordinary = t.resize(_are_ordinary(t, *bounds), "i64")
    t.store(is_ordinary, t.offset(to, _IS_ORDINARY_AT))
    t.emit("ret void")
    return t


def _multiply(kind: Kind) -> _Function:
    """Add the product with 8 columns of B to four words of accumulators.

    Word p of B has, one after the other, of each column a part of its depth.
    """
    given = "ptr %d, ptr %a, ptr %raw, i64 %pairs, i64 %saturates"
    t = _Function(f"multiply_{kind.name}", given)
    t.emit(f"%b = alloca [{STEPS * _STEP_OF_B} x i8], align 64")
    t.emit(f"%b.exponents = alloca [{STEPS // GROUP * _VECTOR_BYTES} x i8], align 64")
    groups = t.op("mul", IrValue("%pairs", "i64"), kind.groups)
    bounds = _unpack_columns(t, kind)
    if not kind.is_integer:
        ordinary = t.op("and", _are_ordinary(t, *bounds), _accumulators_are_ordinary(t))
        rows = t.load("i64", t.offset(_A, _IS_ORDINARY_AT))
        t.branch(t.op("and", ordinary, t.compare("ne", rows, 0)), "quickly", "exactly")
        t.place("quickly")
    quarter, _ = t.begin_loop("quarter", ())
    (_add_integers if kind.is_integer else _add_floats)(t, kind, quarter, groups)
    t.end_loop("quarter", 4)
    t.emit("ret void")
    if not kind.is_integer:
        t.place("exactly")
        vector, _ = t.begin_loop("vector", ())
        _add_doubles(t, kind, vector, groups)
        t.end_loop("vector", WORDS * 32 // LANES)
        t.emit("ret void")
    return t


_A, _B, _D = (IrValue(name, "ptr") for name in ("%a", "%b", "%d"))
_EXPONENTS_OF_B = IrValue("%b.exponents", "ptr")


def _unpack_columns(t: _Function, kind: Kind) -> list[IrValue]:
    """Put columns of B into %b, and their exponents into %b.exponents: in each step the even
    columns, then the odd ones; exponents twice. Returns the bounds of the elements."""
    pair, bounds = t.begin_loop("pair", _BOUNDS)
    raw_at = t.places(IrValue("%raw", "ptr"), pair, 128)
    first = t.places(_B, pair, kind.groups * GROUP * _STEP_OF_B)
    exponents_at = t.places(_EXPONENTS_OF_B, pair, kind.groups * _VECTOR_BYTES)
    columns = [_elements(t, kind, t.offset(raw_at, i * _VECTOR_BYTES)) for i in range(2)]
    in_order = [0, 2, 4, 6, 1, 3, 5, 7]
    for group, (lower, upper) in enumerate(zip(*columns, strict=True)):
        for step in range(0, GROUP, 2):
            lanes = [4 * column + i for i in (step, step + 1) for column in in_order]
            two = t.shuffle(lower, upper, lanes)
            t.store(two, t.offset(first, (group * GROUP + step) * _STEP_OF_B))
        if kind.is_integer:
            continue
        fields = [_exponent_fields(t, kind, x, bounds) for x in (lower, upper)]
        one, other = (t.bitcast(x, INTEGERS) for x in fields)
        twice = t.shuffle(one, other, [4 * column for column in in_order] * 2)
        exponents = _exponents(t, kind, t.bitcast(twice, BYTES), bounds)
        t.store(exponents, t.offset(exponents_at, group * _VECTOR_BYTES))
    t.end_loop("pair", IrValue("%pairs", "i64"), bounds)
    return bounds


def _accumulators_are_ordinary(t: _Function) -> IrValue:
    """Return whether all accumulators are zero or in the range that floats allow."""
    largest, least = _zero(INTEGERS), constant(INTEGERS, -1)
    for i in range(WORDS * 32 // LANES):
        c = t.load(INTEGERS, t.offset(_D, i * _VECTOR_BYTES))
        size = t.op("and", c, (1 << 31) - 1)
        largest = t.intrinsic("umax", largest, size)
        least = t.intrinsic("umin", least, t.op("add", size, -1))
    # Where all products are zero, the bits of an accumulator count below its own exponent.
    low, high = (x + _FLOAT_BIAS << _FLOAT_FRACTION for x in _ORDINARY_ACCUMULATORS)
    return t.op("and", t.all("ult", largest, high), t.all("uge", least, low - 1))


def _accumulators(t: _Function, quarter: IrValue) -> list[IrValue]:
    """Return the addresses of accumulators of a quarter of the rows, first of the even columns.
    More accumulators have no room in registers."""
    half = t.places(_D, t.op("lshr", quarter, 1), 256)
    first = t.places(half, t.op("and", quarter, 1), _VECTOR_BYTES)
    return [t.offset(first, 128 * odd) for odd in range(2)]


def _columns(t: _Function, base: IrValue, offset: int, type_: str) -> IrValue:
    """Four columns, for all rows of a vector."""
    count, _, element = type_.strip("<>").partition(" x ")
    four = t.load(f"<{int(count) // ROWS} x {element}>", t.offset(base, offset))
    return t.shuffle(four, None, list(range(int(count) // ROWS)) * ROWS)


def _add_floats(t: _Function, kind: Kind, quarter: IrValue, groups: IrValue) -> None:
    """Add to the accumulators of a quarter of the rows."""
    places = _accumulators(t, quarter)
    # Products of zeros are not above any other.
    smallest = constant(BYTES, -2 * _ORDINARY - 8)
    group, largest = t.begin_loop("largest", [smallest] * len(places))
    of_rows = t.places(t.offset(_A, _EXPONENTS_AT), quarter, _VECTOR_BYTES)
    rows = t.load(BYTES, t.places(of_rows, group, _STEP_OF_A))
    columns_at = t.places(_EXPONENTS_OF_B, group, _VECTOR_BYTES)
    for odd in range(2):
        exponent = t.intrinsic("sadd.sat", rows, _columns(t, columns_at, 16 * odd, BYTES))
        largest[odd] = t.intrinsic("smax", largest[odd], exponent)
    t.end_loop("largest", groups, largest)
    fields, scales, starts = [], [], []
    for place, exponents in zip(places, largest, strict=True):
        c = t.load(INTEGERS, place)
        field = _largest_field(t, exponents, c)
        up = t.op("sub", constant(INTEGERS, 2 * _FLOAT_BIAS + FRACTION_BITS << 23), field)
        fields.append(field)
        scales.append(t.bitcast(up, FLOATS))
        scaled = t.op("fmul", t.bitcast(c, FLOATS), scales[-1])
        starts.append(t.convert("fptosi", scaled, INTEGERS))
    # Eight products and the accumulator fit into an integer; of sixteen, the products alone do.
    apart = kind.groups == 2
    zeros = [_zero(INTEGERS)] * len(places)

    def cut(odd: int, rows: IrValue, columns: IrValue) -> IrValue:
        scaled = t.op("fmul", t.op("fmul", rows, columns), scales[odd])
        return t.convert("fptosi", scaled, INTEGERS)

    sums = _sums(t, FLOATS, quarter, groups, zeros if apart else starts, cut)
    for odd, place in enumerate(places):
        down = t.op("sub", fields[odd], FRACTION_BITS << _FLOAT_FRACTION)
        total = _truncated_sum(t, sums[odd], starts[odd] if apart else zeros[odd])
        t.store(t.op("fmul", total, t.bitcast(down, FLOATS)), place)


def _sums(
    t: _Function,
    type_: str,
    quarter: IrValue,
    groups: IrValue,
    sums: list[IrValue],
    product: Callable[[int, IrValue, IrValue], IrValue],
) -> list[IrValue]:
    """Add the products of all steps to sums of the even and of the odd columns.

    product: returns a product of rows and columns as integers; it is told whether these are odd.
    """
    group, sums = t.begin_loop("add", sums)
    rows_at = t.places(t.places(_A, quarter, _VECTOR_BYTES), group, GROUP * _STEP_OF_A)
    columns_at = t.places(_B, group, GROUP * _STEP_OF_B)
    for step in range(GROUP):
        rows = t.load(type_, t.offset(rows_at, step * _STEP_OF_A))
        for odd in range(2):
            columns = _columns(t, columns_at, step * _STEP_OF_B + 16 * odd, type_)
            sums[odd] = t.op("add", sums[odd], product(odd, rows, columns))
    t.end_loop("add", groups, sums)
    return sums


def _largest_field(t: _Function, exponents: IrValue, c: IrValue) -> IrValue:
    """Return the exponent field, in its place in a float, of the largest of four exponents and
    c."""
    largest = exponents
    for distance in (16, 8):
        moved = t.op("shl", t.bitcast(largest, INTEGERS), distance)
        largest = t.intrinsic("smax", largest, t.bitcast(moved, BYTES))
    in_place = t.op("ashr", t.bitcast(largest, INTEGERS), 1)  # below it are bits of the others
    field = t.op("add", in_place, _FLOAT_BIAS << _FLOAT_FRACTION)
    size = t.op("and", c, (1 << 31) - 1)
    return t.op("and", t.intrinsic("smax", field, size), 255 << _FLOAT_FRACTION)


def _truncated_sum(t: _Function, a: IrValue, b: IrValue) -> IrValue:
    """Return the sums of integers as floats, cut off to their bits.

    The size of a sum fits into 32 bits; if its sign does not, both integers have that sign.
    """
    total = t.op("add", a, b)
    either, both = t.op("or", a, b), t.op("and", a, b)
    majority = t.op("or", both, t.op("and", total, either))
    negative = t.op("ashr", majority, 31)
    size = t.op("sub", t.op("xor", total, negative), negative)
    zeros = t.intrinsic("ctlz", size, FALSE)
    excess = t.op("sub", constant(INTEGERS, 31 - _FLOAT_FRACTION), zeros)
    dropped = t.intrinsic("smax", excess, _zero(INTEGERS))
    kept = t.op("and", size, t.op("shl", constant(INTEGERS, -1), dropped))
    number = t.bitcast(t.convert("uitofp", kept, FLOATS), INTEGERS)
    return t.bitcast(t.op("or", number, t.op("and", negative, 1 << 31)), FLOATS)


def _add_doubles(t: _Function, kind: Kind, vector: IrValue, groups: IrValue) -> None:
    """Add to one vector of accumulators, for elements of any size."""
    at = t.places(_D, vector, _VECTOR_BYTES)
    c = t.load(FLOATS, at)
    half, odd = t.op("lshr", vector, 2), t.op("and", t.op("lshr", vector, 1), 1)
    rows_at = t.places(_A, half, 2 * _VECTOR_BYTES)
    rows_at = t.places(rows_at, t.op("and", vector, 1), _VECTOR_BYTES)
    columns_at = t.places(_B, odd, 16)
    steps = t.op("mul", groups, GROUP)

    def operands(step: IrValue) -> list[IrValue]:
        rows = t.load(FLOATS, t.places(rows_at, step, _STEP_OF_A))
        return [rows, _columns(t, t.places(columns_at, step, _STEP_OF_B), 0, FLOATS)]

    step, (largest,) = t.begin_loop("exponent", [_exponent(t, c, 1 - _FLOAT_BIAS)])
    a, b = (_exponent(t, x, kind.least_exponent) for x in operands(step))
    largest = t.intrinsic("smax", largest, t.op("add", a, b))
    t.end_loop("exponent", steps, [largest])
    bounded = t.intrinsic("smax", largest, constant(INTEGERS, _LEAST_EXPONENT))
    up = t.op("sub", constant(INTEGERS, FRACTION_BITS), bounded)
    scale = _power_of_two(t, up)

    def cut(x: IrValue) -> IrValue:
        return t.intrinsic("trunc", t.op("fmul", x, scale))

    step, (total,) = t.begin_loop("sum", [cut(t.convert("fpext", c, DOUBLES))])
    a, b = (t.convert("fpext", x, DOUBLES) for x in operands(step))
    total = t.op("fadd", total, cut(t.op("fmul", a, b)))
    t.end_loop("sum", steps, [total])
    kept = t.op("and", t.bitcast(total, LONGS), -(1 << _DOUBLE_FRACTION - _FLOAT_FRACTION))
    down = _power_of_two(t, t.op("sub", _zero(INTEGERS), up))
    number = t.op("fmul", t.bitcast(kept, DOUBLES), down)
    t.store(t.convert("fptrunc", number, FLOATS), at)


def _exponent(t: _Function, x: IrValue, least: int) -> IrValue:
    """Return the exponents of floats, as 32-bit integers."""
    field = t.op("and", t.op("lshr", t.bitcast(x, INTEGERS), _FLOAT_FRACTION), 255)
    exponent = t.op("sub", field, _FLOAT_BIAS)
    bounded = t.intrinsic("smax", exponent, constant(INTEGERS, least))
    is_zero = t.value(with_elements(FLOATS, "i1"), f"fcmp oeq {x}, zeroinitializer")
    return t.choose(is_zero, constant(INTEGERS, _NO_EXPONENT), bounded)


def _power_of_two(t: _Function, exponent: IrValue) -> IrValue:
    biased = t.convert("zext", t.op("add", exponent, _DOUBLE_BIAS), LONGS)
    return t.bitcast(t.op("shl", biased, _DOUBLE_FRACTION), DOUBLES)


def _add_integers(t: _Function, kind: Kind, quarter: IrValue, groups: IrValue) -> None:
    """Add integers to the accumulators of a quarter of the rows; they wrap or saturate. The sums of
    the products fit into one."""

    def pairs(odd: int, rows: IrValue, columns: IrValue) -> IrValue:
        wide = [t.convert("sext", x, f"<{2 * LANES} x i32>") for x in (rows, columns)]
        products = t.op("mul", *wide)
        return t.op("add", *(t.shuffle(products, None, range(i, 2 * LANES, 2)) for i in range(2)))

    places = _accumulators(t, quarter)
    sums = _sums(t, SHORTS, quarter, groups, [_zero(INTEGERS)] * len(places), pairs)
    saturates = t.compare("ne", IrValue("%saturates", "i64"), 0)
    for total, at in zip(sums, places, strict=True):
        old = t.load(INTEGERS, at)
        bounded = t.intrinsic("sadd.sat", old, total)
        t.store(t.select(saturates, bounded, t.op("add", old, total)), at)


def _dispatcher(name: str, prefix: str, arguments: int) -> _Function:
    """Define `name(kind, …)`, which calls the function of that kind. Addresses are integers."""
    formal = ", ".join(f"i64 %a{i}" for i in range(arguments))
    t = _Function(name, f"i64 %kind, {formal}")
    pointers = arguments - 2  # and two numbers after them
    given = [t.value("ptr", f"inttoptr i64 %a{i} to ptr") for i in range(pointers)]
    given += [IrValue(f"%a{i}", "i64") for i in range(pointers, arguments)]
    cases = " ".join(f"i64 {i}, label %{kind.name}" for i, kind in enumerate(KINDS))
    t.emit(f"switch i64 %kind, label %other [{cases}]")
    for kind in KINDS:
        t.place(kind.name)
        t.emit(f"call void @{prefix}_{kind.name}({', '.join(map(str, given))})")
        t.emit("ret void")
    t.place("other")
    t.emit("ret void")
    return t
