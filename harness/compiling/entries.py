"""Finds the submission's kernel in a program, and checks that the rules allow to launch it.

A program may read only its parameters, because the driver's own data are next to them. Compilers
never read parameters at a computed address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod

from harness.compiling.occupancy import multiprocessor
from harness.protocol.report import Diagnostic, Resources
from harness.ptxcpu.ptx.names import base_name
from harness.ptxcpu.ptx.stream import MAX_SAID
from harness.ptxcpu.ptx.syntax import (
    Address,
    Function,
    Instruction,
    Operand,
    Program,
    Symbol,
    symbols,
)
from problem.launcher import BLOCK, MAX_CLUSTER
from problem.signature import SIGNATURE, Signature

_BITS = {"float*": 64, "int": 32}

MAX_DEVICE_BYTES = (4 << 30) - (64 << 20)
"""The limit for __device__ variables: nine times the three ranked matrices. The disassembler counts
in 32 bits."""


def entries(program: Program) -> list[Function]:
    return [function for function in program.functions.values() if function.is_entry]


def find(
    program: Program, templates: Iterable[str] = (), signature: Signature = SIGNATURE
) -> Function | str:
    """Return the submission's kernel, or the reason why no kernel can be launched.

    templates: names of kernels in the source, of which the program need not have an instance.
    """
    every = entries(program)
    named = [entry for entry in every if base_name(entry.name) == signature.kernel]
    if not named:
        others = ", ".join(sorted({*(base_name(entry.name) for entry in every), *templates})[:3])
        return (
            f"no kernel named {signature.kernel}; write "
            f"`__global__ void {signature.kernel}({signature.text})`"
            + (f" (found: {others})" if others else "")
        )
    if len(named) > 1:
        return f"{len(named)} kernels are named {signature.kernel}; keep one"
    kernel = named[0]
    plain = [p for p in kernel.parameters if not p.is_array and not p.type.is_float]
    bits = tuple(p.type.bits for p in plain)
    # A larger alignment would move a parameter away from where the launch puts it.
    moved = any(p.align != p.type.bytes for p in plain)
    if bits != _bits(signature) or moved or len(kernel.parameters) != len(bits):
        return wrong_parameters(signature)
    return kernel


def _bits(signature: Signature) -> tuple[int, ...]:
    return tuple(_BITS[each] for each in signature.types)


def no_instance(signature: Signature, used: Sequence[str]) -> str:
    """Say which instance of the kernel's template the file should have. used: the arguments that
    its host code has for it."""
    if len(used) > 1:
        arguments = ", ".join(f"<{each}>" for each in used)
        return (
            f"{signature.kernel} is a template that host code launches with several arguments "
            f"({arguments}), but the judge launches one kernel for all sizes; keep one launch, or "
            "instantiate one explicitly"
        )
    types = ", ".join(signature.pointer_types[0])
    return (
        f"{signature.kernel} is a template, and the file has no instance of it; add one, like "
        f"`template __global__ void {signature.kernel}<16>({types});`"
    )


def wrong_parameters(signature: Signature) -> str:
    return f"the parameters of {signature.kernel} are not ({signature.text})"


def memory_problem(program: Program) -> str | None:
    """Return why the module is too large for a GPU or the disassembler; None if it is not."""
    inside = (v for f in program.functions.values() for v in f.variables.values())
    every = (*program.variables.values(), *inside)
    size = sum(v.size for v in every if v.space in ("global", "const"))
    if size > MAX_DEVICE_BYTES:
        return (
            f"the kernel's __device__ variables take {size} bytes; "
            f"a submission gets at most {MAX_DEVICE_BYTES}"
        )
    return None


_UNDEFINED = {"discard"}
"""Instructions after which memory has undefined contents."""


def undefined_effect(program: Program) -> Diagnostic | None:
    """Return an error for an instruction with an undefined effect."""
    for function in program.functions.values():
        for item in function.body:
            if isinstance(item, Instruction) and item.opcode.split(".")[0] in _UNDEFINED:
                message = f"`{item.opcode}` leaves memory undefined, which is not allowed"
                return Diagnostic(severity="error", message=message, line=item.line or None)
    return None


def launch_problem(kernel: Function) -> str | None:
    """Return why every GPU would refuse the launch of the kernel; None if some GPU would accept
    it."""
    threads = BLOCK[0] * BLOCK[1] * BLOCK[2]
    allowed = 1
    for size in kernel.directives.get("maxntid", (threads,)):
        allowed *= size
    if allowed < threads:
        return (
            f"the kernel's __launch_bounds__ allow {allowed} threads per block; "
            f"the launch has {threads}"
        )
    required = kernel.directives.get("reqntid")
    if required and tuple(required) + (1,) * (3 - len(required)) != BLOCK:
        return f"the kernel requires blocks of {required} threads; the launch has {BLOCK}"
    blocks = prod(kernel.cluster)
    if not 1 <= blocks <= MAX_CLUSTER:
        return f"the kernel's clusters have {blocks} blocks; a GPU allows 1 to {MAX_CLUSTER}"
    if "explicitcluster" in kernel.directives and "reqnctapercluster" not in kernel.directives:
        return "the kernel requires clusters of no given size; write the sizes in __cluster_dims__"
    if "blocksareclusters" in kernel.directives:
        return "the kernel has its grid counted in clusters; the launch counts it in blocks"
    return None


def has_room(resources: Resources, arch: str) -> bool:
    """Return whether a GPU of this architecture has enough shared memory for one block."""
    return resources.shared_bytes <= multiprocessor(arch).shared_per_block


def shared_memory_problem(resources: Resources, arch: str) -> str | None:
    """Say why a GPU of this architecture has no room for one block, if it has none."""
    if has_room(resources, arch):
        return None
    return (
        f"the kernel asks for {resources.shared_bytes} bytes of shared memory per block; "
        f"{arch} gives a block at most {multiprocessor(arch).shared_per_block}"
    )


_ACCESS = re.compile(r"(ld|st)\.param(?:::entry|::func)?(?:\.v([248]))?\.[busf]([0-9]{1,3})")
_OF_PARAMETERS = re.compile(r"(?!isspacep).*\.param\b")


def parameter_misuse(program: Program) -> Diagnostic | None:
    """Return an error for an instruction that could access memory outside a parameter."""
    for function in program.functions.values():
        sizes = _sizes(function)
        kernels = {p.name for p in function.parameters} if function.is_entry else set()
        for item in function.body:
            if isinstance(item, Instruction) and not _stays_inside(item, sizes, kernels):
                message = f"`{item.text[:MAX_SAID]}` does not stay inside a parameter"
                return Diagnostic(severity="error", message=message, line=item.line or None)
    return None


def _sizes(function: Function) -> dict[str, int]:
    """Return the sizes of a function's own parameters, and of those that it passes to others."""
    given = (v for v in function.variables.values() if v.space == "param")
    return {v.name: v.size for v in (*function.parameters, *function.results, *given)}


def _stays_inside(item: Instruction, sizes: dict[str, int], kernels: set[str]) -> bool:
    """kernels: names that only the place of a load may mention."""
    access = _ACCESS.fullmatch(item.opcode)
    if access is None:
        return not _OF_PARAMETERS.match(item.opcode) and not _names(item.operands) & kernels
    if not item.operands:
        return False
    *values, place = item.operands if access[1] == "ld" else reversed(item.operands)
    if not isinstance(place, Address) or not isinstance(place.base, Symbol):
        return False
    size = int(access[2] or 1) * int(access[3]) // 8
    inside = 0 <= place.offset <= sizes.get(place.base.name, -1) - size
    return inside and not _names(values) & kernels


def _names(operands: Iterable[Operand]) -> set[str]:
    return {name for operand in operands for name in symbols(operand)}
