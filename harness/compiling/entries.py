"""Finds the submission's kernel in a program, and checks that the rules allow to launch it.

A program may read only its parameters, because the driver's own data are next to them. Compilers
never read parameters at a computed address.
"""

import re
from collections.abc import Iterable
from math import prod

from harness.compiling.errors import refuse, refuse_as_unsupported, refuse_for, refuse_launch
from harness.compiling.occupancy import multiprocessor
from harness.compiling.source import Source
from harness.protocol.compiler import ARCHITECTURES
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
from problem.signature import Signature

_BITS = {"float*": 64, "int": 32}

MAX_DEVICE_BYTES = (4 << 30) - (64 << 20)
"""The limit for __device__ variables: nine times the three ranked matrices. The disassembler counts
in 32 bits."""


def find(program: Program, source: Source) -> Function:
    """Return the submission's kernel. Raises Refused if no kernel can be launched."""
    signature = source.signature
    entries = [function for function in program.functions.values() if function.is_entry]
    named = [entry for entry in entries if base_name(entry.name) == signature.kernel]
    if len(named) == 1 and _has_parameters(named[0], signature):
        return named[0]
    if source.template_line is not None:
        message = _no_instance(source)
        raise refuse_for(Diagnostic(severity="error", message=message, line=source.template_line))
    if len(named) > 1:
        raise refuse(f"{len(named)} kernels are named {signature.kernel}; keep one")
    if named:
        if source.parameters is None:  # a macro declares it
            raise refuse(f"the parameters of {signature.kernel} are not ({signature.text})")
        written, line = source.parameters
        message = f"{signature.kernel} takes {written}; it must take ({signature.text})"
        raise refuse_for(Diagnostic(severity="error", message=message, line=line))
    if signature.kernel in source.host_lines:
        message = f"{signature.kernel} is a host function here; a kernel begins with `__global__`"
        line = source.host_lines[signature.kernel]
        raise refuse_for(Diagnostic(severity="error", message=message, line=line))
    # The program need not have an instance of a template.
    names = sorted({*(base_name(entry.name) for entry in entries), *source.kernel_templates})
    others = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    raise refuse(
        f"no kernel named {signature.kernel}; write "
        f"`__global__ void {signature.kernel}({signature.text})`"
        + (f" (found: {others})" if others else "")
    )


def _has_parameters(kernel: Function, signature: Signature) -> bool:
    plain = [p for p in kernel.parameters if not p.is_array and not p.type.is_float]
    bits = [p.type.bits for p in plain]
    # A larger alignment would move a parameter away from where the launch puts it.
    moved = any(p.align != p.type.bytes for p in plain)
    expected = [_BITS[each] for each in signature.types]
    return bits == expected and not moved and len(kernel.parameters) == len(bits)


def _no_instance(source: Source) -> str:
    """Say which instance of the kernel's template the file should have."""
    signature, used = source.signature, source.instances_used
    if len(used) > 1:
        arguments = ", ".join(f"<{each}>" for each in used)
        return (
            f"{signature.kernel} is a template that host code launches with several arguments "
            f"({arguments}), but the judge launches one kernel for all sizes; keep one launch, or "
            "instantiate one explicitly"
        )
    return (
        f"{signature.kernel} is a template, and the file has no instance of it; add one, like "
        f"`{source.template_example}`"
    )


def check_launch(program: Program, kernel: Function) -> None:
    """Raise Refused if the variables are too large for a GPU or the disassembler, or if every GPU
    would refuse the launch of the kernel."""
    inside = (v for f in program.functions.values() for v in f.variables.values())
    every = (*program.variables.values(), *inside)
    size = sum(v.size for v in every if v.space == "global")
    if size > MAX_DEVICE_BYTES:
        raise refuse_launch(
            f"the kernel's __device__ variables take {size} bytes; "
            f"a submission gets at most {MAX_DEVICE_BYTES}"
        )
    allowed = prod(kernel.directives.get("maxntid", BLOCK))
    if allowed < prod(BLOCK):
        raise refuse_launch(
            f"the kernel's __launch_bounds__ allow {allowed} threads per block; "
            f"the launch has {prod(BLOCK)}"
        )
    required = kernel.directives.get("reqntid")
    if required and tuple(required) + (1,) * (3 - len(required)) != BLOCK:
        message = f"the kernel requires blocks of {required} threads; the launch has {BLOCK}"
        raise refuse_launch(message)
    blocks = prod(kernel.cluster)
    if not 1 <= blocks <= MAX_CLUSTER:
        message = f"the kernel's clusters have {blocks} blocks; a GPU allows 1 to {MAX_CLUSTER}"
        raise refuse_launch(message)
    is_sized = "reqnctapercluster" in kernel.directives
    if "blocksareclusters" in kernel.directives or (
        "explicitcluster" in kernel.directives and not is_sized
    ):
        raise refuse_launch(
            "the kernel requires another launch: size clusters by __cluster_dims__ alone"
        )


def check_shared_memory(resources: Resources, arch: str) -> None:
    """Raise Refused if a GPU of this architecture has no room for one block."""
    limits = {each: multiprocessor(each).shared_per_block for each in (arch, *ARCHITECTURES)}
    if resources.shared_bytes <= limits[arch]:
        return
    message = (
        f"the kernel asks for {resources.shared_bytes} bytes of shared memory per block; "
        f"{arch} gives a block at most {limits[arch]}"
    )
    larger = [each for each in ARCHITECTURES if resources.shared_bytes <= limits[each]]
    if not larger:
        raise refuse_launch(message)
    raise refuse_as_unsupported(f"{message}; for more, see {', '.join(larger)}", None)


_UNDEFINED = {"discard"}
"""Instructions after which memory has undefined contents."""

_ACCESS = re.compile(r"(ld|st)\.param(?:::entry|::func)?(?:\.v([248]))?\.[busf]([0-9]{1,3})")
_OF_PARAMETERS = re.compile(r"(?!isspacep).*\.param\b")


def check_instructions(program: Program) -> None:
    """Raise Refused for an instruction that has an undefined effect, or could access memory outside
    a parameter."""
    for function in program.functions.values():
        # Parameters that a function passes to others are among its variables.
        passed = (v for v in function.variables.values() if v.space == "param")
        sizes = {v.name: v.size for v in (*function.parameters, *function.results, *passed)}
        kernels = {p.name for p in function.parameters} if function.is_entry else set()
        for item in function.body:
            if not isinstance(item, Instruction):
                continue
            if item.opcode.split(".")[0] in _UNDEFINED:
                message = f"`{item.opcode}` leaves memory undefined, which is not allowed"
            elif not _stays_inside(item, sizes, kernels):
                message = f"`{item.text[:MAX_SAID]}` does not stay inside a parameter"
            else:
                continue
            raise refuse_for(Diagnostic(severity="error", message=message, line=item.line or None))


def _stays_inside(item: Instruction, sizes: dict[str, int], kernels: set[str]) -> bool:
    """kernels: parameter symbols that are allowed only as the address of a load."""
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
