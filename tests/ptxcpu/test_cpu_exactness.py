"""Every form of every arithmetic instruction, compared with exact references on special
operands."""

import itertools
import random
import re
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import settings

from harness.protocol.device import Ready, Run
from harness.protocol.request import Fault
from harness.ptxcpu.analysis.inline import inline
from harness.ptxcpu.codegen.instructions import (
    INSTRUCTIONS,
    bits,
    convert,
    floating,
    integer,
    select,
)
from harness.ptxcpu.codegen.matching import Form
from harness.ptxcpu.codegen.table import InstructionTable
from harness.ptxcpu.codegen.thread import Mode, Translator
from harness.ptxcpu.errors import CannotTranslate
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.ptx.types import TYPES
from problem.cases import Shape
from problem.launcher import LaunchLine
from tests.ptxcpu import oracle
from tests.ptxcpu.programs import entry
from tests.ptxcpu.runner import Runner
from tests.requests import inputs_of

FAMILIES = {
    "integer": integer.TABLE,
    "bits": bits.TABLE,
    "select": select.TABLE,
    "floating": floating.TABLE,
    "convert": convert.TABLE,
}
# Not functions of their operands alone, or tested by name below.
ELSEWHERE = {"cvta", "isspacep", "mov"}

THREADS = 512 if settings().max_examples > 1000 else 32  # the nightly profile tries more
CLASSES = ("b16", "b32", "b64", "f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "pred")


def expansions(form: Form) -> Iterator[tuple[str, dict[str, str]]]:
    """Return every opcode that matches a row of the table, with its choices."""
    parts = re.findall(r"\{\.([\w:]+)\}|\.([\w:]+)", form.opcode)
    options: list[list[tuple[str, str]]] = []
    for optional, plain in parts:
        name = optional or plain
        words = [(name, f".{word}") for word in form.choices.get(name, (name,))]
        options.append([(name, ""), *words] if optional else words)
    root = re.match(r"\w+", form.opcode)[0]  # type: ignore[index]
    for chosen in itertools.product(*options):
        yield root + "".join(x for _, x in chosen), {n: x[1:] for n, x in chosen}


def operand_types(form: Form, opcode: str, choice: dict[str, str]) -> list[str]:
    if opcode.startswith("cvt") and "from" in choice and "pack" not in opcode:
        return [choice["from"]]
    main = choice.get("type", "b32")
    found = []
    for name in form.operands[1:]:
        plain, _, given = name.partition(":")
        if opcode.startswith("mad.wide") and plain == "c":
            given = f"b{2 * TYPES[main].bits}"
        if opcode.startswith("setp") and plain == "c":
            given = "pred"
        if opcode.startswith("dp4a"):
            given = "b32"
        found.append(given or main)
    return found


def register_class(type_: str) -> str:
    return type_ if type_ in CLASSES else f"b{max(16, TYPES[type_].bits)}"


def cases(table: InstructionTable) -> list[tuple[str, list[str]]]:
    """Opcode and source types of everything in a table of instructions."""
    found = {}
    for row in table:
        if row.form.root in ELSEWHERE:
            continue
        for opcode, choice in expansions(row.form):
            if not re.match(r"(add|sub)c?\.cc|addc|subc|mad\.(lo|hi)\.cc|madc", opcode):
                found[opcode] = operand_types(row.form, opcode, choice)
    return list(found.items())


SPECIAL = {
    "int": [0, 1, 2, 3, 7, 15, 16, 31, 32, 33, 63, 64, 255, 256, -1, -2, 0x12345678, 1 << 62],
    "float": ["0", "-0", "1", "-1.5", "2.5", "-2.5", "0.5", "3", "1e10", "-1e10", "2147483647.5"],
}


def patterns(class_: str, rng: random.Random) -> int:
    if class_ == "pred":
        return rng.getrandbits(1)
    if class_.endswith("x2"):
        half = class_[:-2]
        return patterns(half, rng) | patterns(half, rng) << 16
    if class_ not in oracle.FORMATS:
        bits = int(class_[1:])
        edge = rng.choice([1 << bits - 1, (1 << bits - 1) - 1, (1 << bits) - 1])
        pool = [rng.choice(SPECIAL["int"]), edge, rng.getrandbits(bits)]
        return rng.choice(pool) & (1 << bits) - 1
    f = oracle.FORMATS[class_]
    infinity = ((1 << f.exponent) - 1) << f.mantissa
    sign = rng.getrandbits(1) << f.bits - 1
    number = oracle.Fraction(
        rng.choice(["0", "1", "1.5", "2.5", "0.5", "3", "7", "255", "1000000"])
    )
    pool = [
        sign | oracle.encode(oracle.Number(False, number), f),
        sign
        | rng.choice(
            [infinity, infinity | 1, infinity - 1, 1, 2, (1 << f.mantissa) - 1, 1 << f.mantissa]
        ),
        sign
        | (rng.getrandbits(f.exponent - 3) + (3 << f.exponent - 3)) << f.mantissa
        | rng.getrandbits(f.mantissa),
        rng.getrandbits(f.bits),
    ]
    return rng.choice(pool)


def table(seed: int) -> dict[str, list[list[int]]]:
    """For each class of register and each of four operands, a pattern per thread."""
    rng = random.Random(seed)
    return {c: [[patterns(c, rng) for _ in range(THREADS)] for _ in range(4)] for c in CLASSES}


def kernel(batch: list[tuple[str, list[str]]]) -> str:
    lines = [".reg .b64 %in, %out, %row, %size, %d; .reg .b32 %t; .reg .pred %p, %q;"]
    for class_ in CLASSES:
        width = {"pred": ".pred"}.get(class_, f".b{TYPES[class_].bits}")
        lines.append(f".reg {width} %{class_}_<4>; .reg .b64 %w_{class_};")
    per_thread = 8 * 4 * len(CLASSES)
    lines.append("ld.param.u64 %in, [A]; ld.param.u64 %out, [C]; mov.u32 %t, %tid.x;")
    lines.append(f"mul.wide.u32 %row, %t, {per_thread}; add.s64 %in, %in, %row;")
    lines.append(f"mul.wide.u32 %row, %t, {16 * len(batch)}; add.s64 %out, %out, %row;")
    used = {register_class(type_) for _, types in batch for type_ in types}
    for i, (class_, j) in enumerate(itertools.product(CLASSES, range(4))):
        if class_ not in used:
            continue
        at = f"[%in+{8 * i}]"
        if class_ == "pred":
            lines.append(f"ld.global.u64 %w_pred, {at}; setp.ne.u64 %pred_{j}, %w_pred, 0;")
        else:
            lines.append(f"ld.global.b{TYPES[class_].bits} %{class_}_{j}, {at};")
    for i, (opcode, types) in enumerate(batch):
        sources = [f"%{register_class(type_)}_{j}" for j, type_ in enumerate(types)]
        if opcode.startswith("lop3"):
            sources[3] = str(LOOKUP)
        predicate = opcode.startswith(("setp", "testp")) or opcode.endswith(".pred")
        target = "%p|%q" if opcode.startswith("setp") else "%p" if predicate else "%d"
        lines.append("mov.u64 %d, 0; " + f"{opcode} {target}, {', '.join(sources)};")
        if predicate:
            lines.append("selp.u64 %d, 1, 0, %p;")
        lines.append(f"st.global.u64 [%out+{16 * i}], %d;")
        second = "selp.u64 %d, 1, 0, %q;" if opcode.startswith("setp") else "mov.u64 %d, 0;"
        lines.append(f"{second} st.global.u64 [%out+{16 * i + 8}], %d;")
    return entry("u64 A, u64 B, u64 C, u32 M, u32 N, u32 K", "\n".join(lines))


LOOKUP = 0xCA


REFUSED = re.compile(
    # a comparison of halves whose result has another type
    r"set\.\w+\.(?!(\w+)\.\1$)(f16|bf16)(x2)?\.(f16|bf16)(x2)?"
    # 64-bit integers that a double does not hold exactly
    r"|cvt\.rn(\.sat)?\.(f16|bf16)\.[su]64"
    r"|cvt\.r[zmp](\.sat)?\.(f16|bf16|f32|f64)\.[su]64"
)
"""Combinations that the forms allow and the device refuses: all others must be translated."""

COUNTS = {"integer": 432, "bits": 44, "select": 968, "floating": 276, "convert": 1434}
"""The number of forms that are translated, so that a lost form is detected."""


def is_translatable(case: tuple[str, list[str]]) -> bool:
    try:
        inlined = inline(parse(kernel([case])), "litmus", 0)
        Translator(inlined, INSTRUCTIONS, (THREADS, 1, 1), Mode.RUN).module()
    except CannotTranslate:
        return False
    return True


def results(cpu: Runner, text: str, operands: dict[str, list[list[int]]], count: int) -> np.ndarray:
    """[thread][instruction][first, second] as 64-bit words."""
    raw = np.zeros((THREADS, len(CLASSES), 4), np.uint64)
    for i, class_ in enumerate(CLASSES):
        for j in range(4):
            raw[:, i, j] = operands[class_][j]
    A = raw.reshape(THREADS, -1).view(np.float32)
    shape = Shape(THREADS, A.shape[1], 4 * count)
    line = LaunchLine(tile_rows=shape.M, tile_columns=shape.K)
    ready = cpu.device.load_ptx(text, "litmus", line, (THREADS, 1, 1))
    assert isinstance(ready, Ready), ready
    B = np.zeros((shape.N, shape.K), np.float32)
    done = cpu.device.run(Run(inputs=inputs_of(shape, A, B), seconds=30))
    assert not isinstance(done, Fault), done.message
    return done.output.view(np.uint64).reshape(THREADS, count, 2)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_form(cpu: Runner, family: str) -> None:
    every = cases(FAMILIES[family])
    chosen = [case for case in every if not REFUSED.fullmatch(case[0])]
    assert len(chosen) == COUNTS[family]
    unknown = [case[0] for case in every if case not in chosen and is_translatable(case)]
    assert not unknown, "translated, and compared with nothing: " + ", ".join(unknown)
    assert_exact(cpu, chosen, table(len(chosen)))


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("family", ["integer", "bits"])
def test_every_form_of_constants(cpu: Runner, family: str, seed: int) -> None:
    chosen = [case for case in cases(FAMILIES[family]) if not REFUSED.fullmatch(case[0])]
    operands = {
        class_: [[values[0]] * THREADS for values in given] for class_, given in table(seed).items()
    }

    def constant(match: re.Match[str]) -> str:
        size, class_, operand = match.groups()
        return f"mov.{size} %{class_}_{operand}, {operands[class_][int(operand)][0]};"

    load = re.compile(r"ld\.global\.(b\d+) %(b\d+)_(\d), \S+;")
    assert_exact(cpu, chosen, operands, lambda text: load.sub(constant, text))


def assert_exact(
    cpu: Runner,
    chosen: list[tuple[str, list[str]]],
    operands: dict[str, list[list[int]]],
    changed: Callable[[str], str] = lambda text: text,
) -> None:
    """Check the results of all cases. changed: returns the kernel to run in place of another."""
    wrong = []
    for start in range(0, len(chosen), 150):
        batch = chosen[start : start + 150]
        found = results(cpu, changed(kernel(batch)), operands, len(batch))
        for i, (opcode, types) in enumerate(batch):
            wrong += mistakes(opcode, types, operands, found[:, i])
    assert not wrong, "\n".join(wrong[:40])


def mistakes(
    opcode: str, types: list[str], operands: dict[str, list[list[int]]], found: np.ndarray
) -> list[str]:
    """Return the first operands for which the device differs."""
    for thread in range(THREADS):
        given = [operands[register_class(type_)][j][thread] for j, type_ in enumerate(types)]
        if opcode.startswith("lop3"):
            given[3] = LOOKUP
        expected = oracle.evaluate(opcode, given)
        first, second = (int(x) for x in found[thread])
        if not expected.agrees(first) or expected.second not in (None, second):
            shown = ", ".join(hex(x) for x in given)
            return [f"{opcode} {shown}: {first:#x}, expected {expected.bits:#x}"]
    return []


@pytest.mark.parametrize("seed", range(6))
def test_the_nth_set_bit_is_found(cpu: Runner, seed: int) -> None:
    rng, operands = random.Random(seed), table(seed)
    masks = [rng.getrandbits(32) | rng.getrandbits(32) for _ in range(THREADS)]
    bases = [rng.randrange(33) for _ in range(THREADS)]
    counts = [rng.randint(-9, 9) & (1 << 32) - 1 for _ in range(THREADS)]
    masks[0], bases[0], counts[0] = (1 << 32) - 1, 0, 32
    masks[1], bases[1], counts[1] = (1 << 32) - 1, 31, -32 & (1 << 32) - 1
    operands["b32"][:3] = masks, bases, counts
    assert_exact(cpu, [("fns.b32", ["b32", "b32", "b32"])], operands)


def of_words(cpu: Runner, first: str, second: str) -> Iterator[tuple[int, int, int, int]]:
    """Yield two operands of two words each, %a and %b, and what two pieces of code put into %d."""
    words = "mov.b64 {%a0, %a1}, %b64_0; mov.b64 {%b0, %b1}, %b64_1;"
    text = kernel([("mov.b64", ["b64"])])
    begin = f".reg .b32 %a<2>, %b<2>, %z<4>; {words} {first}"
    text = text.replace("mov.u64 %d, 0; mov.b64 %d, %b64_0;", begin)
    text = text.replace("mov.u64 %d, 0; st.global", f"{second} st.global")
    operands = table(1)
    for a, b, found in zip(*operands["b64"][:2], results(cpu, text, operands, 1), strict=True):
        yield a, b, int(found[0, 0]), int(found[0, 1])


def test_sums_and_differences_carry(cpu: Runner) -> None:
    addition = "add.cc.u32 %z0, %a0, %b0; addc.u32 %z1, %a1, %b1; mov.b64 %d, {%z0, %z1};"
    subtraction = addition.replace("add", "sub")
    for a, b, total, difference in of_words(cpu, addition, subtraction):
        assert (total, difference) == ((a + b) % (1 << 64), (a - b) % (1 << 64))


def test_products_of_several_words(cpu: Runner) -> None:
    product = """mov.u32 %z0, 0; mul.lo.u32 %z1, %a0, %b0; mul.hi.u32 %z2, %a0, %b0;
        mad.lo.cc.u32 %z2, %a1, %b0, %z2; madc.hi.u32 %z3, %a1, %b0, 0;
        mad.lo.cc.u32 %z2, %a0, %b1, %z2; madc.hi.cc.u32 %z3, %a0, %b1, %z3; addc.u32 %z0, 0, 0;
        mad.lo.cc.u32 %z3, %a1, %b1, %z3; madc.hi.u32 %z0, %a1, %b1, %z0;
        mov.b64 %d, {%z1, %z2};"""
    for a, b, low, high in of_words(cpu, product, "mov.b64 %d, {%z3, %z0};"):
        assert low | high << 64 == a * b
