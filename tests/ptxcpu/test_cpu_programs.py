"""Random programs with branches and loops give the same bits as vectors and thread by thread."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.ptxcpu.arguments import Buffer, ParameterKind
from tests.ptxcpu.programs import both_paths, entry

KINDS = (ParameterKind.READ_ONLY, ParameterKind.WRITABLE)

HEAD = """.reg .b64 %in, %out, %at, %d<4>; .reg .b32 %i<8>;
ld.param.u64 %in, [in]; ld.param.u64 %out, [out];
cvta.to.global.u64 %in, %in; cvta.to.global.u64 %out, %out;
mov.u32 %r0, %tid.x; mul.wide.u32 %at, %r0, 64;
add.s64 %in, %in, %at; add.s64 %out, %out, %at;"""
WORDS = 16  # 32-bit words that each thread reads, and writes

integer = st.integers(0, 5).map(lambda i: f"%r{i}")
single = st.integers(0, 5).map(lambda i: f"%f{i}")
wide = st.integers(0, 3).map(lambda i: f"%d{i}")
predicate = st.integers(0, 3).map(lambda i: f"%p{i}")
number = st.one_of(integer, st.integers(-(2**31), 2**31 - 1).map(str))


def form(
    opcode: st.SearchStrategy[str], *operands: st.SearchStrategy[str]
) -> st.SearchStrategy[str]:
    return st.tuples(opcode, *operands).map(lambda x: f"{x[0]} {', '.join(x[1:])};")


INT2 = (
    *("add.s32", "sub.s32", "mul.lo.s32", "mul.hi.u32", "mul.hi.s32", "and.b32", "or.b32"),
    *("xor.b32", "min.s32", "max.u32", "shl.b32", "shr.s32", "shr.u32", "div.s32", "rem.u32"),
)
FLOAT2 = (
    *("add.f32", "sub.rn.f32", "mul.f32", "mul.rz.f32", "add.rp.f32", "min.f32", "max.ftz.f32"),
    "div.rn.f32",
)
COMPARE = ["setp.lt.s32", "setp.ge.u32", "setp.eq.s32", "setp.ne.s32"]
plain = st.one_of(
    form(st.sampled_from(INT2), integer, number, number),
    form(st.sampled_from(["mad.lo.s32", "sad.s32"]), integer, number, integer, number),
    form(st.sampled_from(FLOAT2), single, single, single),
    form(st.sampled_from(["fma.rn.f32", "fma.rm.f32"]), single, single, single, single),
    form(st.sampled_from(["cvt.rzi.s32.f32", "cvt.rmi.u32.f32"]), integer, single),
    form(st.sampled_from(["cvt.rn.f32.s32", "cvt.rz.f32.u32"]), single, integer),
    form(st.sampled_from(["mul.wide.s32", "mul.wide.u32"]), wide, integer, integer),
    form(st.sampled_from(["add.s64", "sub.s64", "mul.lo.s64", "xor.b64"]), wide, wide, wide),
    form(st.sampled_from(["cvt.u32.u64", "popc.b64", "clz.b64"]), integer, wide),
    form(st.sampled_from(["cvt.s64.s32"]), wide, integer),
    form(st.sampled_from(COMPARE), predicate, integer, number),
    form(
        st.sampled_from(["setp.lt.f32", "setp.geu.f32", "setp.nan.f32"]), predicate, single, single
    ),
    form(st.sampled_from(["selp.b32"]), integer, number, integer, predicate),
    form(st.sampled_from(["and.pred", "or.pred", "xor.pred"]), predicate, predicate, predicate),
)
guarded = st.tuples(st.sampled_from(["", "!"]), predicate, plain).map(
    lambda x: f"@{x[0]}{x[1]} {x[2]}"
)
Block = list[object]


def nested(inner: st.SearchStrategy[Block]) -> st.SearchStrategy[Block]:
    branch = st.tuples(predicate, inner, inner).map(lambda x: [("if", *x)])
    loop = st.tuples(st.integers(1, 5), inner).map(lambda x: [("for", *x)])
    return st.lists(st.one_of(branch, loop, inner), min_size=1, max_size=3).map(
        lambda x: [item for part in x for item in part]
    )


blocks = st.recursive(
    st.lists(st.one_of(plain, guarded), min_size=1, max_size=6), nested, max_leaves=6
)


def emit(block: Block, lines: list[str], depth: int, serial: list[int]) -> None:
    for item in block:
        if isinstance(item, str):
            lines.append(item)
            continue
        serial[0] += 1
        name = f"L{serial[0]}"
        if item[0] == "if":  # type: ignore[index]
            _, condition, then, other = item  # type: ignore[misc]
            lines.append(f"@{condition} bra {name}_then;")
            emit(other, lines, depth, serial)
            lines.append(f"bra.uni {name}_end;\n{name}_then:")
            emit(then, lines, depth, serial)
            lines.append(f"{name}_end:")
        else:
            _, count, body = item  # type: ignore[misc]
            lines.append(f"mov.u32 %i{depth % 8}, 0;\n{name}:")
            emit(body, lines, depth + 1, serial)
            lines.append(f"add.s32 %i{depth % 8}, %i{depth % 8}, 1;")
            lines.append(
                f"{{ .reg .pred q; setp.lt.s32 q, %i{depth % 8}, {count}; @q bra {name}; }}"
            )


def program(block: Block) -> str:
    lines = [HEAD]
    lines += [f"ld.global.u32 %r{i}, [%in+{4 * i}];" for i in range(6)]
    lines += [f"ld.global.f32 %f{i}, [%in+{24 + 4 * i}];" for i in range(6)]
    lines += [f"ld.global.u64 %d{i}, [%in+{48 + 8 * i}];" for i in range(2)]
    emit(block, lines, 0, [0])
    lines += [f"st.global.u32 [%out+{4 * i}], %r{i};" for i in range(6)]
    lines += [f"st.global.f32 [%out+{24 + 4 * i}], %f{i};" for i in range(6)]
    lines += [f"st.global.u64 [%out+{48 + 8 * i}], %d{i};" for i in range(2)]
    return entry("u64 in, u64 out", "\n".join(lines))


def same(found: np.ndarray, expected: np.ndarray) -> bool:
    """Return whether all bits are equal, except that all NaN are equal."""
    equal = found.view(np.uint32) == expected.view(np.uint32)
    both = np.isnan(found) & np.isnan(expected)
    floats = np.zeros_like(equal)
    floats[:, 6:12] = True
    return bool((equal | (both & floats)).all())


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(block=blocks, seed=st.integers(0, 2**32 - 1))
def test_random_programs(block: Block, seed: int) -> None:
    threads = 64
    random = np.random.default_rng(seed)
    words = random.integers(0, 2**32, (threads, WORDS), np.uint32)
    words[:, 6:12] = random.normal(0, 100, (threads, 6)).astype(np.float32).view(np.uint32)
    words[::3, :3] = random.integers(0, 40, words[::3, :3].shape)
    outputs = []
    fast, slow = both_paths(program(block), KINDS, threads)
    for kernel, vector_blocks in ((fast, 1), (slow, 0)):
        C = np.zeros((threads, WORDS), np.float32)
        result = kernel.run((1, 1, 1), [Buffer(words), Buffer(C, writable=True)])
        assert result.fault is None
        assert result.vector_blocks == vector_blocks
        outputs.append(C)
    assert same(*outputs)
