"""LLVM IR to machine code, and machine code into the process."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

from harness.devices.cpu.errors import CannotTranslate


class Code:
    """Machine code in this process; it lives as long as this object."""

    def __init__(self, machine_code: bytes) -> None:
        machine = _target_machine()
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(machine_code))
        self._engine.finalize_object()

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


def compile_ir(text: str) -> bytes:
    """Optimise and compile a module to an object file."""
    machine = _target_machine()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:  # a mistake of ours, which must not cost the process
        reason = str(error).strip().splitlines()[-1]
        raise CannotTranslate(f"this device made LLVM IR that is not valid: {reason}") from error
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.slp_vectorization = True  # finds the register tiles of good kernels
    options.loop_vectorization = options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(module, builder)
    return bytes(machine.emit_object(module))


def publish(name: str, address: int) -> None:
    """Let machine code that is loaded later call a function by name."""
    llvm.add_symbol(name, address)


def _target_machine() -> llvm.TargetMachine:
    """A new one each time: an engine takes the one it is given as its own."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )


@functools.cache
def version() -> str:
    """A hash of all that machine code depends on besides the kernel: this translator's own files,
    LLVM and the processor."""
    digest = hashlib.sha256()
    for path in sorted(Path(__file__).parent.rglob("*")):
        if path.suffix in (".py", ".cu"):
            digest.update(path.name.encode() + path.read_bytes())
    features = llvm.get_host_cpu_features().flatten()
    parts = (llvmlite.__version__, llvm.get_host_cpu_name(), features, llvm.get_default_triple())
    digest.update("\0".join(parts).encode())
    return digest.hexdigest()
