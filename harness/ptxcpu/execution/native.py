"""The compilation of LLVM IR to machine code, and the loading of machine code."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

import harness.ptxcpu.ptx
from harness.ptxcpu.errors import InternalError

# Wider vectors than 8 floats double the vectoriser's time and gain nothing measurable.
llvm.set_option("matmul-arena", "-slp-max-vf=8")


class Code:
    """Machine code in this process; it lives as long as this object."""

    def __init__(self, machine_code: bytes) -> None:
        machine = _target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def compile_vectors(text: str) -> bytes:
    """Compile a module of vector code. Its loops need no optimisation: all optimisations would take
    three times as long and gain little."""
    machine = _target_machine(level=2)
    module = _parsed(text)
    _optimise_little(machine, module)
    return bytes(machine.emit_object(module))


def compile_ir(text: str, whole: bool) -> bytes:
    """Compile a module to an object file, with all optimisations of level 1 or a few of them. Level
    2 takes a third longer than level 1, and kernels run about as fast without it."""
    machine = _target_machine(level=2 if whole else 0)
    module = _parsed(text)
    if whole:
        _passes(machine, level=1).run(module, _builder(machine, 1))
    else:
        _optimise_little(machine, module)
    return bytes(machine.emit_object(module))


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


def _optimise_little(machine: llvm.TargetMachine, module: llvm.ModuleRef) -> None:
    """Run only the optimisations that are worth their time in a kernel of many thousand
    instructions or in a watched one. It compiles in a tenth of the time and may be a few times
    slower."""
    before = llvm.create_new_module_pass_manager()
    before.add_sroa_pass()
    before.add_instruction_combine_pass()
    before.run(module, _builder(machine, 2))
    _passes(machine, level=0).run(module, _builder(machine, 0))  # splits the coroutine
    after = llvm.create_new_module_pass_manager()
    after.add_simplify_cfg_pass()
    after.add_lower_switch_pass()  # else a thread that wakes compares its way through all waits
    after.run(module, _builder(machine, 2))


def publish(name: str, address: int) -> None:
    """Make a function available by name to machine code that is loaded later."""
    llvm.add_symbol(name, address)


def _target_machine(level: int = 2) -> llvm.TargetMachine:
    """Return a new target machine: an execution engine takes ownership of the one it gets."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=level,
        jit=True,
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
