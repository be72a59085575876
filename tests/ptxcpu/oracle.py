"""A reference for PTX instructions in exact arithmetic: integers and fractions, value by value.

It shares nothing with the translator but the parser. A value is a bit pattern (a Python int);
floating-point results are exact fractions, rounded once at the end.
"""

from __future__ import annotations

import functools
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Format:
    exponent: int
    mantissa: int

    @property
    def bits(self) -> int:
        return 1 + self.exponent + self.mantissa

    @property
    def lowest(self) -> int:
        """The exponent of the smallest normal number."""
        return 2 - (1 << self.exponent - 1)


FORMATS = {
    "f16": Format(5, 10),
    "bf16": Format(8, 7),
    "f32": Format(8, 23),
    "f64": Format(11, 52),
    "tf32": Format(8, 23),
}


@dataclass(frozen=True)
class Number:
    """A floating-point datum: a sign and a size, which is a fraction, infinity or NaN."""

    negative: bool
    size: Fraction | float

    @property
    def is_nan(self) -> bool:
        return self.size != self.size

    @property
    def is_infinite(self) -> bool:
        return self.size == math.inf

    @property
    def value(self) -> Fraction:
        assert isinstance(self.size, Fraction)
        return -self.size if self.negative else self.size

    @property
    def real(self) -> Fraction | float:
        """The number for comparisons, which may be infinite. Both zeros are equal."""
        return -self.size if self.negative else self.size

    def __neg__(self) -> Number:
        return Number(not self.negative, self.size)


NAN = Number(False, math.nan)
ZERO = Number(False, Fraction(0))
ONE = Number(False, Fraction(1))


@functools.cache
def decode(bits: int, f: Format) -> Number:
    negative = bool(bits >> f.bits - 1 & 1)
    exponent, mantissa = bits >> f.mantissa & (1 << f.exponent) - 1, bits & (1 << f.mantissa) - 1
    if exponent == (1 << f.exponent) - 1:
        return Number(negative, math.nan if mantissa else math.inf)
    if exponent == 0:
        return Number(negative, Fraction(mantissa) * Fraction(2) ** (f.lowest - f.mantissa))
    size = Fraction(mantissa + (1 << f.mantissa))
    return Number(negative, size * Fraction(2) ** (exponent - 1 + f.lowest - f.mantissa))


def encode(x: Number, f: Format, mode: str = "rn") -> int:
    """Round to a format: to nearest even (rn), ties away (rna), or towards 0, -inf, +inf."""
    sign = int(x.negative) << f.bits - 1
    infinity = ((1 << f.exponent) - 1) << f.mantissa
    if x.is_nan:
        return infinity | 1 << f.mantissa - 1
    if x.is_infinite:
        return sign | infinity
    assert isinstance(x.size, Fraction)
    if x.size == 0:
        return sign
    exponent = x.size.numerator.bit_length() - x.size.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > x.size
    unit = Fraction(2) ** (max(exponent, f.lowest) - f.mantissa)
    count, rest = divmod(x.size, unit)
    up = {"rz": False, "rm": x.negative and rest > 0, "rp": not x.negative and rest > 0}
    half = Fraction(rest) / unit
    nearest = half > Fraction(1, 2) or (half == Fraction(1, 2) and (mode == "rna" or count & 1))
    count += int(up.get(mode, bool(nearest)))
    rounded = count * unit
    if count == 0:
        return sign
    if rounded >= Fraction(2) ** (1 << f.exponent - 1):
        away = mode in ("rn", "rna") or mode == ("rm" if x.negative else "rp")
        return sign | (infinity if away else infinity - 1)
    exponent = rounded.numerator.bit_length() - rounded.denominator.bit_length()
    exponent -= Fraction(2) ** exponent > rounded
    if exponent < f.lowest:
        return sign | int(count)
    mantissa = int(rounded / Fraction(2) ** (exponent - f.mantissa)) - (1 << f.mantissa)
    return sign | (exponent - f.lowest + 1) << f.mantissa | mantissa


def add(a: Number, b: Number, mode: str) -> Number:
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite and a.negative != b.negative):
        return NAN
    if a.is_infinite or b.is_infinite:
        return a if a.is_infinite else b
    total = a.value + b.value
    if total == 0:
        negative = a.negative if a.negative == b.negative else mode == "rm"
        return Number(negative, Fraction(0))
    return Number(total < 0, abs(total))


def multiply(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or {a.size, b.size} == {math.inf, Fraction(0)}:
        return NAN
    if a.is_infinite or b.is_infinite:
        return Number(negative, math.inf)
    return Number(negative, a.size * b.size)


def divide(a: Number, b: Number) -> Number:
    negative = a.negative != b.negative
    if a.is_nan or b.is_nan or (a.is_infinite and b.is_infinite) or (a.size == 0 == b.size):
        return NAN
    if b.size == 0 or a.is_infinite:
        return Number(negative, math.inf)
    return Number(negative, Fraction(0) if b.is_infinite else a.size / b.size)


def square_root(a: Number, f: Format) -> Number:
    """Return the root to more than twice the format's precision, so that it rounds correctly."""
    if a.is_nan or (a.negative and a.size):
        return NAN
    if a.is_infinite or not a.size:
        return a
    assert isinstance(a.size, Fraction)
    scale = 4 * (f.mantissa + 1200)
    root = math.isqrt(int(a.size * Fraction(2) ** (2 * scale)))
    exact = Fraction(root, 1) ** 2 == a.size * Fraction(2) ** (2 * scale)
    return Number(False, (Fraction(root) + (0 if exact else Fraction(1, 2))) / Fraction(2) ** scale)


def extreme(a: Number, b: Number, want_nan: bool, largest: bool) -> Number:
    if a.is_nan or b.is_nan:
        return NAN if want_nan or (a.is_nan and b.is_nan) else b if a.is_nan else a
    key = lambda x: (x.real, not x.negative)  # noqa: E731  # -0 is below +0
    return max(a, b, key=key) if largest else min(a, b, key=key)


@dataclass(frozen=True)
class Result:
    """The bits of d (and of the second predicate of setp), and whether floats may differ."""

    bits: int
    format: Format | None = None
    lanes: int = 1
    loose: bool = False
    second: int | None = None

    def agrees(self, found: int) -> bool:
        if self.format is None:
            return found == self.bits
        width = self.format.bits
        parts = [
            (x >> i * width & (1 << width) - 1)
            for i in range(self.lanes)
            for x in (self.bits, found)
        ]
        pairs = zip(parts[::2], parts[1::2], strict=True)
        return found >> width * self.lanes == 0 and all(self._same(a, b) for a, b in pairs)

    def _same(self, a: int, b: int) -> bool:
        x, y = decode(a, self.format), decode(b, self.format)
        if x.is_nan or y.is_nan:
            return x.is_nan and y.is_nan
        if not self.loose or x.is_infinite or y.is_infinite:
            return a == b or (self.loose and x.size == y.size)
        return abs(x.value - y.value) <= Fraction(1, 10**5) * max(abs(x.value), Fraction(1, 10**3))


def signed(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> bits - 1 else x


def integer(x: int, type_: str) -> int:
    bits = int(type_[1:])
    return signed(x, bits) if type_[0] == "s" else x & (1 << bits) - 1


def evaluate(opcode: str, a: Sequence[int]) -> Result:
    """Return the result of an instruction for operands given as bit patterns."""
    root, *mods = opcode.split(".")
    types = [m for m in mods if re.fullmatch(r"[sub](8|16|32|64)|b?f16(x2)?|f32|f64|pred", m)]
    type_ = types[-1] if types else "b32"
    if root in ("cvt",):
        return convert(mods, types, a)
    if root == "set" and mods[-1] in ("f16", "bf16", "f16x2", "bf16x2") and mods[-1] == mods[-2]:
        return set_halves(mods, a)
    if root in ("setp", "set"):
        return compare(root, mods, types, a)
    if root == "selp":
        return Result(a[0] if a[2] & 1 else a[1])
    if root == "slct":
        other = types[-1]
        if other == "f32":
            c = decode(a[2], FORMATS["f32"])
            if "ftz" in mods:
                c = flush(c, FORMATS["f32"])
            return Result(a[0] if not c.is_nan and c.real >= 0 else a[1])
        return Result(a[0] if signed(a[2], 32) >= 0 else a[1])
    if mods[-1] in ("u16x2", "s16x2"):
        parts = [evaluate(opcode[:-2], [x >> i & 0xFFFF for x in a]).bits for i in (0, 16)]
        return Result(parts[0] | parts[1] << 16)
    if type_.endswith("x2"):
        return pairs(opcode.replace("x2", ""), a)
    if type_ in FORMATS:
        return floating(root, mods, type_, a)
    return Result(whole(root, mods, type_, a) & (1 << 64) - 1)


def pairs(opcode: str, a: Sequence[int]) -> Result:
    low = evaluate(opcode, [x & 0xFFFF for x in a])
    high = evaluate(opcode, [x >> 16 for x in a])
    return Result(low.bits | high.bits << 16, low.format, 2)


def whole(root: str, mods: list[str], type_: str, a: Sequence[int]) -> int:
    if type_ == "pred":
        return (whole(root, mods, "b32", a) if root != "not" else ~a[0]) & 1
    bits = int(type_[1:])
    mask = (1 << bits) - 1
    x = [integer(v, type_) for v in a]
    u = [v & mask for v in a]
    if root in ("mul", "mad") and "wide" in mods:
        c = integer(a[2], f"{type_[0]}{2 * bits}") if root == "mad" else 0
        return (x[0] * x[1] + c) & (1 << 2 * bits) - 1
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if type_[0] == "s" else (0, mask)

    def saturated(total: int) -> int:
        return min(max(total, low), high) if "sat" in mods else total

    def product(p: int, q: int, upper: int) -> int:
        addend = x[2] if root.startswith("mad") else 0
        return (p * q >> (upper if "hi" in mods else 0)) + addend

    def product24() -> int:
        p, q = (signed(v, 24) if type_[0] == "s" else v & 0xFFFFFF for v in a[:2])
        return product(p, q, 16)

    def divided() -> tuple[int, int]:
        if x[1] == 0:
            return mask, u[0]
        quotient = abs(x[0]) // abs(x[1]) * (1 if (x[0] < 0) == (x[1] < 0) else -1)
        return quotient, x[0] - quotient * x[1]

    def highest_bit() -> int:
        digits = u[0] if x[0] >= 0 else ~u[0] & mask
        position = digits.bit_length() - 1
        if not digits:
            return 0xFFFFFFFF
        return bits - 1 - position if "shiftamt" in mods else position

    def shifted_pair() -> int:
        amount, both = a[2] & 31 if "wrap" in mods else min(a[2], 32), u[0] | u[1] << 32
        return both << amount >> 32 if "l" in mods else both >> amount

    def nth_set_bit() -> int:
        count = integer(a[2], "s32")
        place, left, step = u[1], abs(count) - 1, 1 if count > 0 else -1
        if count == 0:
            return place if place < 32 and u[0] >> place & 1 else 0xFFFFFFFF
        while 0 <= place < 32:
            if u[0] >> place & 1:
                if left == 0:
                    return place
                left -= 1
            place += step
        return 0xFFFFFFFF

    def looked_up() -> int:
        places = (4 * (u[0] >> i & 1) + 2 * (u[1] >> i & 1) + (u[2] >> i & 1) for i in range(32))
        return sum((a[3] >> place & 1) << i for i, place in enumerate(places))

    def dot_product() -> int:
        kinds = [m for m in mods if m in ("s32", "u32")]
        octets = [[integer(v >> 8 * i, f"{kind[0]}8") for i in range(4)]
                  for v, kind in zip(a[:2], kinds, strict=True)]  # fmt: skip
        return a[2] + sum(p * q for p, q in zip(*octets, strict=True))

    def dot_product_of_pairs() -> int:
        first, second = (m[0] for m in mods if m in ("s32", "u32"))
        start = 16 if "hi" in mods else 0
        return a[2] + sum(
            integer(a[0] >> 16 * i, f"{first}16") * integer(a[1] >> start + 8 * i, f"{second}8")
            for i in range(2)
        )

    if re.fullmatch(r"v\w+[24]", root):
        return video(root[1:-1], int(root[-1]), mods, a) & 0xFFFFFFFF
    table: dict[str, Callable[[], int]] = {
        "add": lambda: saturated(x[0] + x[1]),
        "sub": lambda: saturated(x[0] - x[1]),
        "mul": lambda: product(x[0], x[1], bits),
        "mad": lambda: product(x[0], x[1], bits),
        "mul24": product24,
        "mad24": product24,
        "div": lambda: divided()[0],
        "rem": lambda: divided()[1],
        "abs": lambda: abs(x[0]),
        "neg": lambda: -x[0],
        "min": lambda: min(x[0], x[1]),
        "max": lambda: max(x[0], x[1]),
        "sad": lambda: x[2] + abs(x[0] - x[1]),
        "and": lambda: u[0] & u[1],
        "or": lambda: u[0] | u[1],
        "xor": lambda: u[0] ^ u[1],
        "not": lambda: ~u[0],
        "cnot": lambda: int(u[0] == 0),
        "mov": lambda: u[0],
        "shl": lambda: u[0] << a[1] if a[1] < bits else 0,
        "shr": lambda: x[0] >> min(a[1], bits),
        "popc": u[0].bit_count,
        "clz": lambda: bits - u[0].bit_length(),
        "brev": lambda: int(f"{u[0]:0{bits}b}"[::-1], 2),
        "bfind": highest_bit,
        "bfe": lambda: bit_field(x[0], bits, a[1] & 255, a[2] & 255, type_[0] == "s"),
        "bfi": lambda: insert_bits(u[0], u[1], bits, a[2] & 255, a[3] & 255),
        "lop3": looked_up,
        "fns": nth_set_bit,
        "shf": shifted_pair,
        "prmt": lambda: permute(u[0], u[1], a[2], mods),
        "dp4a": dot_product,
        "dp2a": dot_product_of_pairs,
    }
    return table[root]() & mask


def video(name: str, lanes: int, mods: list[str], a: Sequence[int]) -> int:
    """A video instruction, lane by lane, as the manual defines it."""
    *result, first, second = (m[0] for m in mods if m in ("s32", "u32"))
    bits = 32 // lanes
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if result == ["s"] else (0, (1 << bits) - 1)
    total, packed = a[2], 0
    for i in range(0, 32, bits):
        x, y = integer(a[0] >> i, f"{first}{bits}"), integer(a[1] >> i, f"{second}{bits}")
        if name == "set":
            (relation,) = (m for m in mods if m in ("eq", "ne", "lt", "le", "gt", "ge"))
            found = int(getattr(operator, relation)(x, y))
        else:
            sums = {"add": x + y, "sub": x - y, "absdiff": abs(x - y)}
            found = {**sums, "min": min(x, y), "max": max(x, y)}[name]
        if "sat" in mods:
            found = min(max(found, low), high)
        total += found
        packed |= (found & (1 << bits) - 1) << i
    return total if "add" in mods else packed


def bit_field(x: int, bits: int, start: int, length: int, is_signed: bool) -> int:
    """Extract a bit field bit by bit, as the manual defines it."""
    top = bits - 1
    sign = x >> min(start + length - 1, top) & 1 if is_signed and length else 0
    found = 0
    for i in range(bits):
        inside = i < length and start + i <= top
        found |= (x >> start + i & 1 if inside else sign) << i
    return found


def insert_bits(x: int, y: int, bits: int, start: int, length: int) -> int:
    for i in range(length):
        if start + i < bits and i < bits:
            y = y & ~(1 << start + i) | (x >> i & 1) << start + i
    return y


def permute(x: int, y: int, selector: int, mods: list[str]) -> int:
    octets = [(x | y << 32) >> 8 * i & 255 for i in range(8)]
    n = selector & 3
    fixed = {
        "f4e": [n, n + 1, n + 2, n + 3],
        "b4e": [n, n - 1 & 7, n - 2 & 7, n - 3 & 7],
        "rc8": [n] * 4,
        "ecl": [n if i < n else i for i in range(4)],
        "ecr": [i if i < n else n for i in range(4)],
        "rc16": [2 * (n & 1), 2 * (n & 1) + 1] * 2,
    }
    mode = next((m for m in mods if m in fixed), None)
    if mode:
        return sum(octets[c] << 8 * i for i, c in enumerate(fixed[mode]))
    found = 0
    for i in range(4):
        choice = selector >> 4 * i & 15
        octet = octets[choice & 7]
        found |= ((0xFF if octet & 0x80 else 0) if choice & 8 else octet) << 8 * i
    return found


def flush(x: Number, f: Format) -> Number:
    small = not x.is_nan and x.size < Fraction(2) ** f.lowest
    return Number(x.negative, Fraction(0)) if small else x


def finish(x: Number, f: Format, mode: str, mods: Sequence[str]) -> int:
    bits = encode(x, f, mode)
    if "ftz" in mods and f.exponent == 8 and f.mantissa == 23:
        bits = encode(flush(decode(bits, f), f), f)
    if "sat" in mods:
        y = decode(bits, f)
        y = ZERO if y.is_nan or y.real <= 0 else ONE if y.real > 1 else y
        bits = encode(y, f)
    if "relu" in mods:
        y = decode(bits, f)
        bits = encode(ZERO, f) if not y.is_nan and y.real <= 0 else bits
    return bits


def floating(root: str, mods: list[str], type_: str, a: Sequence[int]) -> Result:
    f = FORMATS[type_]
    x = [decode(v, f) for v in a]
    if "ftz" in mods and type_ == "f32":
        x = [flush(v, f) for v in x]
    mode = next((m for m in mods if m in ("rz", "rm", "rp")), "rn")
    sign_bit = 1 << f.bits - 1
    if root == "mov":
        return Result(a[0])
    if root == "testp":
        return Result(int(classify(x[0], f, mods)))
    if root in ("neg", "abs"):
        bits = encode(x[0], f) if "ftz" in mods else a[0]
        return Result(bits ^ sign_bit if root == "neg" else bits & ~sign_bit, f)
    if root == "copysign":
        return Result(a[1] & ~sign_bit | a[0] & sign_bit, f)
    if root in ("sin", "cos", "lg2", "ex2", "tanh"):
        return Result(encode(function(root, x[0]), f), f, loose=True)
    if root in ("rcp", "rsqrt") and "ftz" in mods and type_ == "f64":
        return coarse(root, a[0])
    if root in ("min", "max"):
        xorsign = "xorsign" in mods
        sizes = [Number(False, v.size) for v in x] if xorsign else x
        y = extreme(*sizes, want_nan="NaN" in mods, largest=root == "max")
        y = Number(x[0].negative != x[1].negative, y.size) if xorsign else y
        return Result(finish(y, f, mode, mods), f)
    table: dict[str, Callable[[], Number]] = {
        "add": lambda: add(x[0], x[1], mode),
        "sub": lambda: add(x[0], -x[1], mode),
        "mul": lambda: multiply(x[0], x[1]),
        "fma": lambda: add(multiply(x[0], x[1]), x[2], mode),
        "mad": lambda: add(multiply(x[0], x[1]), x[2], mode),
        "div": lambda: divide(x[0], x[1]),
        "rcp": lambda: divide(ONE, x[0]),
        "sqrt": lambda: square_root(x[0], f),
        "rsqrt": lambda: divide(ONE, decode(encode(square_root(x[0], f), f), f)),
    }
    return Result(finish(table[root](), f, mode, mods), f, loose=root == "rsqrt")


def coarse(root: str, bits: int) -> Result:
    """Return the upper half of an f64 as exactly as possible. The GPU's library refines its own."""
    f = FORMATS["f64"]

    def upper_half(x: Number) -> Number:
        x = flush(x, f)
        return x if x.is_nan else decode(encode(x, f) & 0xFFFFFFFF_00000000, f)

    x = upper_half(decode(bits, f))
    y = decode(encode(square_root(x, f), f), f) if root == "rsqrt" else x
    return Result(encode(upper_half(decode(encode(divide(ONE, y), f), f)), f), f)


def classify(x: Number, f: Format, mods: Sequence[str]) -> bool:
    finite = not x.is_nan and not x.is_infinite
    normal = finite and x.size >= Fraction(2) ** f.lowest
    table = {
        "finite": finite,
        "infinite": x.is_infinite,
        "number": not x.is_nan,
        "notanumber": x.is_nan,
        "normal": normal,
        "subnormal": finite and not normal and x.size != 0,
    }
    return next(table[m] for m in mods if m in table)


def function(root: str, x: Number) -> Number:
    """Return the value of a function, accurately enough for `.approx`."""
    if x.is_nan:
        return NAN
    y = float(x.real)
    try:
        if root == "lg2" and y == 0:
            found = -math.inf
        elif root == "lg2":
            found = math.log2(y)
        else:
            found = {
                "sin": math.sin,
                "cos": math.cos,
                "ex2": math.exp2 if hasattr(math, "exp2") else lambda v: 2.0**v,
                "tanh": math.tanh,
            }[root](y)
    except ValueError:
        return NAN
    except OverflowError:
        found = math.inf
    return Number(
        math.copysign(1, found) < 0, Fraction(abs(found)) if math.isfinite(found) else math.inf
    )


def compare(root: str, mods: list[str], types: list[str], a: Sequence[int]) -> Result:
    cmp, type_ = mods[0], types[-1]
    if type_ in FORMATS:
        x, y = (decode(v, FORMATS[type_]) for v in a[:2])
        if "ftz" in mods and type_ == "f32":
            x, y = flush(x, FORMATS["f32"]), flush(y, FORMATS["f32"])
        found = compare_numbers(cmp, x, y)
    else:
        p, q = (integer(v, type_.replace("b", "u")) for v in a[:2])
        name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(cmp, cmp)
        if name != cmp:
            p, q = (integer(v, f"u{type_[1:]}") for v in a[:2])
        found = relation(name, p, q)
    if root == "set":
        if mods[-2] == "f32":
            return Result(0x3F800000 if found else 0)
        return Result(0xFFFFFFFF if found else 0)
    results = [found, not found]
    for boolean, apply in (("and", bool.__and__), ("or", bool.__or__), ("xor", bool.__xor__)):
        if boolean in mods:
            results = [apply(r, bool(a[2])) for r in results]
    return Result(int(results[0]), second=int(results[1]))


def set_halves(mods: list[str], a: Sequence[int]) -> Result:
    f = FORMATS[mods[-1].removesuffix("x2")]
    found, lanes = 0, 2 if mods[-1].endswith("x2") else 1
    for i in range(lanes):
        x, y = (decode(v >> 16 * i & 0xFFFF, f) for v in a)
        found |= (encode(ONE, f) if compare_numbers(mods[0], x, y) else 0) << 16 * i
    return Result(found)


def compare_numbers(cmp: str, x: Number, y: Number) -> bool:
    unordered = x.is_nan or y.is_nan
    if cmp == "num":
        return not unordered
    if cmp == "nan":
        return unordered
    if unordered:
        return len(cmp) == 3
    return relation(cmp[:2], x.real, y.real)


def relation(name: str, p: Fraction | float, q: Fraction | float) -> bool:
    return {"eq": p == q, "ne": p != q, "lt": p < q, "le": p <= q, "gt": p > q, "ge": p >= q}[name]


def integral(x: Fraction, how: str) -> int:
    down = math.floor(x)
    table = {"rni": round(x), "rzi": math.trunc(x), "rmi": down, "rpi": math.ceil(x)}
    return table[how]


def convert(mods: list[str], types: list[str], a: Sequence[int]) -> Result:
    mode = next((m for m in mods if m in ("rna", "rn", "rz", "rm", "rp")), "rn")
    how = next((m for m in mods if m in ("rni", "rzi", "rmi", "rpi")), None)
    if "tf32" in mods:
        return to_tf32(a[0], mode, mods)
    if "pack" in mods:
        return pack_integers(types[0], a)
    to, from_ = types[0], types[-1]
    if to.endswith("x2"):
        f = FORMATS[to[:-2]]
        high, low = (finish(decode(v, FORMATS["f32"]), f, mode, mods) for v in a[:2])
        return Result(low | high << 16, f, 2)
    if from_ in FORMATS:
        f = FORMATS[from_]
        x = decode(a[0], f)
        if "ftz" in mods and from_ == "f32":
            x = flush(x, f)
        if to in FORMATS:
            if how and not x.is_nan and not x.is_infinite:
                x = Number(x.negative, Fraction(abs(integral(x.value, how))))
            return Result(finish(x, FORMATS[to], mode, mods), FORMATS[to])
        return Result(to_integer(x, to, from_, how or "rzi"))
    value = integer(a[0], from_)
    if to in FORMATS:
        return Result(
            finish(Number(value < 0, Fraction(abs(value))), FORMATS[to], mode, mods), FORMATS[to]
        )
    bits = int(to[1:])
    if "sat" in mods:
        value = clamp_to(value, to)
    return Result(integer(value, to) & (1 << max(bits, 64)) - 1)


def pack_integers(to: str, a: Sequence[int]) -> Result:
    bits = int(to[1:])
    high, low = (clamp_to(signed(v, 32), to) & (1 << bits) - 1 for v in a[:2])
    rest = a[2] << 2 * bits & 0xFFFFFFFF if len(a) > 2 else 0
    return Result(rest | high << bits | low)


def clamp_to(value: int, to: str) -> int:
    bits = int(to[1:])
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if to[0] == "s" else (0, (1 << bits) - 1)
    return min(max(value, low), high)


def to_integer(x: Number, to: str, from_: str, how: str) -> int:
    """Return an integer sign-extended to 64 bits, as a wide register holds it."""
    bits = int(to[1:])
    if x.is_nan:
        value = 1 << bits - 1 if 64 in (bits, FORMATS[from_].bits) else 0
        value = integer(value, to)
    elif x.is_infinite:
        value = clamp_to(-(1 << 200) if x.negative else 1 << 200, to)
    else:
        value = clamp_to(integral(x.value, how), to)
    return value & (1 << 64) - 1


def to_tf32(bits: int, mode: str, mods: Sequence[str]) -> Result:
    x = decode(bits, FORMATS["f32"])
    special = x.is_nan or x.is_infinite
    found = bits if special else encode(x, Format(8, 10), mode) << 13
    if "relu" in mods and not x.is_nan and x.real <= 0:
        found = 0
    return Result(found, FORMATS["f32"])
