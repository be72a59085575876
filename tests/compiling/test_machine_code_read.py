"""What machine code says of one of its kernels, and not of another."""

from __future__ import annotations

import struct
from functools import cache

import pytest

from harness.compiling.machine_code import Parameter, _attributes, entry_point
from harness.compiling.ptxas import assemble

PROGRAM = """\
.version 8.0
.target sm_90
.address_size 64
.visible .entry small(.param .u64 a, .param .u32 n)
{
.reg .b64 %rd<2>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [a];
ld.param.u32 %r1, [n];
st.global.u32 [%rd1], %r1;
ret;
}
.weak .entry weak()
{
ret;
}
.entry large(.param .align 8 .b8 s[24])
.minnctapersm 1
{
.reg .b64 %rd<2>;
.reg .f32 %f<99>;
ld.param.u64 %rd1, [s+16];
BODY
ret;
}
"""
LOADS = "\n".join(f"ld.volatile.global.f32 %f{n}, [%rd1+{4 * n}];" for n in range(90))
STORES = "\n".join(f"st.volatile.global.f32 [%rd1+{4 * n}], %f{n};" for n in range(90))


@cache
def machine_code() -> bytes:
    made = assemble(PROGRAM.replace("BODY", f"{LOADS}\n{STORES}"), "sm_90")
    assert made.cubin, made.log
    return made.cubin


def test_each_kernel_has_its_own_registers_and_parameters() -> None:
    small, large = (entry_point(machine_code(), name) for name in ("small", "large"))
    assert small.parameters == (Parameter(0, 8), Parameter(8, 4)) and small.parameter_bytes == 12
    assert large.parameters == (Parameter(0, 24),) and large.parameter_bytes == 24
    assert 0 < small.registers < 32 and large.registers >= 90
    none = entry_point(machine_code(), "weak")
    assert (none.parameters, none.parameter_bytes) == ((), 0)


def test_a_kernel_is_visible_only_where_the_program_says_so() -> None:
    assert entry_point(machine_code(), "small").is_visible
    assert entry_point(machine_code(), "weak").is_visible
    assert not entry_point(machine_code(), "large").is_visible


def test_a_kernel_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match="the machine code has no kernel other"):
        entry_point(machine_code(), "other")


@pytest.mark.parametrize("damage", [b"", b"no ELF at all", b"\x7fELF" + bytes(60)])
def test_what_is_no_machine_code_says_nothing(damage: bytes) -> None:
    with pytest.raises(ValueError, match="machine code"):
        entry_point(damage, "small")


def test_machine_code_that_lacks_a_register_count_is_refused() -> None:
    register_count = struct.pack("<BBH", 4, 0x2F, 8)
    damaged = machine_code().replace(register_count, struct.pack("<BBH", 4, 0x7F, 8))
    with pytest.raises(ValueError, match="the machine code does not say what small takes"):
        entry_point(damaged, "small")


def test_attributes_have_their_value_behind_them_or_in_two_bytes() -> None:
    data = struct.pack("<BBH", 4, 0x2F, 3) + b"abc" + struct.pack("<BBH", 3, 0x19, 0x1234)
    data += struct.pack("<BBH", 1, 0x07, 0)
    assert [*_attributes(data)] == [(0x2F, b"abc"), (0x19, b"\x34\x12"), (0x07, b"\0\0")]
    assert [*_attributes(b"")] == []
    with pytest.raises(struct.error):
        [*_attributes(b"\x04\x2f")]
