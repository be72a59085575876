"""The compilation of LLVM IR to machine code, and the loading of machine code."""

import functools
import hashlib
import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

import harness.ptxcpu.ptx
from harness.ptxcpu.errors import InternalError

# Wider vectors than 8 floats double the vectoriser's time and gain nothing measurable.
llvm.set_option("matmul-arena", "-slp-max-vf=8")
# The instructions of a basic block keep their order, in which sums stay in registers
# (vector/tile.py).
llvm.set_option("matmul-arena", "-enable-misched=false")


class Code:
    """Machine code in this process; it lives as long as this object.

    functions: the names of functions that have an address. imports: the addresses of functions that
    the code calls.
    """

    def __init__(
        self, machine_code: bytes, functions: Iterable[str], imports: Mapping[str, int]
    ) -> None:
        library = llvm.JITLibraryBuilder().add_object_img(machine_code).add_current_process()
        for name in functions:
            library.export_symbol(name)
        for name, address in imports.items():
            library.import_symbol(name, address)
        self._linked = library.link(_linker(), f"code {next(_numbers)}")

    def address(self, name: str) -> int:
        return int(self._linked[name])


_numbers = itertools.count()


@functools.cache
def _linker() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(_target_machine(), use_jit_link=True)


def compile_vectors(text: str) -> bytes:
    """Compile a module of vector code. Its loops need no optimisation: all optimisations would take
    three times as long and gain little."""
    machine = _target_machine(level=2)
    module = _parsed(text)
    before = llvm.create_new_module_pass_manager()
    before.add_sroa_pass()
    before.add_instruction_combine_pass()
    before.add_strip_symbols_pass()  # LLVM would copy names with the parts of the coroutine
    before.run(module, _builder(machine, 2))
    _passes(machine, level=0).run(module, _builder(machine, 0))  # splits the coroutine
    after = llvm.create_new_module_pass_manager()
    after.add_simplify_cfg_pass()
    after.add_lower_switch_pass()  # else a unit that wakes compares its way through all waits
    after.run(module, _builder(machine, 2))
    return bytes(machine.emit_object(module))


def compile_well(text: str) -> bytes:
    """Compile a module with all optimisations of level 1. Level 2 takes a third longer, and kernels
    run about as fast without it."""
    machine = _target_machine(level=2)
    module = _parsed(text)
    _passes(machine, level=1).run(module, _builder(machine, 1))
    return bytes(machine.emit_object(module))


def compile_plainly(text: str) -> bytes:
    """Compile a module without coroutines to an object file, without optimisation. It takes a tenth
    of the time, and the code may be a few times slower."""
    return bytes(_target_machine(level=0).emit_object(_parsed(text)))


def _parsed(text: str) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[-1]
        raise InternalError(f"the CPU device generated invalid LLVM IR: {reason}") from error
    return module


def _builder(machine: llvm.TargetMachine, level: int) -> llvm.PassBuilder:
    options = llvm.create_pipeline_tuning_options(speed_level=level)
    options.slp_vectorization = True  # finds the register tiles of good kernels
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = False
    return llvm.create_pass_builder(machine, options)


def _passes(machine: llvm.TargetMachine, level: int) -> llvm.ModulePassManager:
    return _builder(machine, level).getModulePassManager()


def _target_machine(level: int = 2) -> llvm.TargetMachine:
    """Return a new target machine. Its code reaches everything by distances of 32 bits: LLVM's fast
    instruction selection knows no calls in other models of code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        reloc="pic",
        codemodel="small",
    )


_ROOMS = (Path(__file__).parents[1], Path(harness.ptxcpu.ptx.__file__).parent)


@functools.cache
def version() -> str:
    """Return a hash of everything except the kernel that machine code depends on: the files of this
    translator, LLVM and the processor."""
    digest = hashlib.sha256()
    for path in sorted(p for room in _ROOMS for p in room.rglob("*")):
        if path.suffix in (".py", ".cu"):
            digest.update(path.name.encode() + path.read_bytes())
    features = llvm.get_host_cpu_features().flatten()
    parts = (llvmlite.__version__, llvm.get_host_cpu_name(), features, llvm.get_default_triple())
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()
