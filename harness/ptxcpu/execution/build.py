"""Compiles the runtime and kernels to machine code, or takes them from the cache."""

import ctypes
import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from pathlib import Path

import numpy as np

from harness.ptxcpu import runtime
from harness.ptxcpu.analysis.inline import InlinedKernel
from harness.ptxcpu.arguments import Bytes, zeros
from harness.ptxcpu.codegen.host import host_module
from harness.ptxcpu.codegen.instructions import INSTRUCTIONS
from harness.ptxcpu.codegen.product_watch import ProductWatcher, watches_products
from harness.ptxcpu.codegen.thread import Mode, Translator
from harness.ptxcpu.errors import InternalError
from harness.ptxcpu.execution import native
from harness.ptxcpu.execution.cache import Cache
from harness.ptxcpu.ptx.parser import parse
from harness.ptxcpu.runtime import layout
from harness.ptxcpu.vector.translator import VectorTranslator, lanes_for
from harness.ptxcpu.vector.watched import WatchedTranslator

LARGE_IR = 960_000
"""The characters of IR above which a kernel is optimised less: full optimisation would take
longer than it saves."""

LARGE_VECTORS = 700_000
"""The same for vector code: the code generator would need more time than the launches of a grading
save."""

SOURCES = (
    "declarations",
    "memory",
    "clocks",
    "checks",
    "copies",
    "tensor",
    "wgmma",
    "warp",
    "counts",
    "copy_counts",
    "cluster",
    "scheduler",
    "watch",
    "units",
)


def runtime_source() -> str:
    """Return all of the runtime as one CUDA C++ file."""
    folder = Path(runtime.__file__).parent
    parts = [(folder / f"{name}.cu").read_text() for name in SOURCES]
    text = layout.header() + "\n".join(parts)
    # Loops are not unrolled unless their source says so: this takes a third of the time to compile.
    return re.sub(r"(?<!#pragma unroll)\n(\s*)(for \()", r'\n\1_Pragma("unroll 1") \2', text)


def _runtime_ptx(source: str) -> str:
    """PTX with external functions."""
    from harness.ptxcpu import nvrtc

    options = ("--gpu-architecture=compute_90", "-rdc=true", "-w")
    output = nvrtc.compile_to_ptx(nvrtc.Source(source, "runtime.cu"), options)
    if not output.succeeded:
        raise InternalError(f"the CPU device's runtime does not compile:\n{output.log}")
    return output.ptx


@dataclass(frozen=True)
class _Runtime:
    """The runtime in machine code, and the addresses of its functions."""

    code: native.Code
    functions: dict[str, int]


@functools.cache
def _runtime(cache: Cache) -> _Runtime:
    source = runtime_source()
    names = re.findall(r'extern "C" __device__ [\w ]+\*? ?(rt_\w+)\(', source)

    def make() -> bytes:
        return native.compile_well(host_module(parse(_runtime_ptx(source)), INSTRUCTIONS))

    with cache.one_at_a_time():
        code = native.Code(cache.get(("runtime", native.version()), make), names, {})
    return _Runtime(code, {name: code.address(name) for name in names})


def runtime_address(cache: Cache, name: str) -> int:
    """Return the address of a function of the runtime."""
    return _runtime(cache).functions[name]


@dataclass(frozen=True)
class Loaded:
    """A kernel in machine code, for one shape of block."""

    kernel: InlinedKernel
    code: native.Code
    block: tuple[int, int, int]
    frame_bytes: int
    """The bytes of a coroutine's frame."""
    lanes: int = 1
    """Threads that one coroutine runs: more than one on the vector path."""

    @property
    def threads(self) -> int:
        x, y, z = self.block
        return x * y * z

    @functools.cached_property
    def module_flags(self) -> Bytes:
        """Return the state of each byte of module memory. The checks never change it, since CUDA
        initialises all variables."""
        memory = self.kernel.module
        flags = zeros(memory.size + 64)
        states = memory.flags(layout.Byte.WRITTEN, layout.Byte.OUTSIDE)
        flags[: memory.size] = np.frombuffer(states, np.uint8)
        return flags


def _loaded(
    cache: Cache,
    key: tuple[str, ...],
    make: Callable[[], bytes],
    kernel: InlinedKernel,
    block: tuple[int, int, int],
    lanes: int = 1,
) -> Loaded:
    """Return the kernel whose machine code has this key. Its code calls the runtime."""
    code = native.Code(cache.get(key, make), ["thread"], _runtime(cache).functions)
    ask = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)
    frame_bytes = int(ask(code.address("thread"))(None, -1))
    return Loaded(kernel, code, block, frame_bytes, lanes)


def _compiled(translator: Translator, compile_small: Callable[[str], bytes], most: float) -> bytes:
    """Compile a kernel so if its IR has at most so many characters, otherwise plainly."""
    module = translator.module(most)
    return (native.compile_plainly if module.is_split else compile_small)(module.text)


def build_units(
    cache: Cache,
    text: str,
    kernel: InlinedKernel,
    block: tuple[int, int, int],
    cell_width: int | None,
    only_bounds: bool,
    optimised: bool,
) -> Loaded:
    """Return one kernel for the vector path, watched if the width of cells is given. Raises
    CannotTranslate.

    optimised: optimise large kernels, too.
    """
    lanes = lanes_for(kernel, block)

    def make() -> bytes:
        given = kernel, INSTRUCTIONS, block, lanes
        if cell_width:
            translator: VectorTranslator = WatchedTranslator(*given, cell_width)
        else:
            translator = VectorTranslator(*given, only_bounds)
        runs_long = optimised or (only_bounds and translator.computes_data)
        return _compiled(translator, native.compile_vectors, inf if runs_long else LARGE_VECTORS)

    options = cell_width, only_bounds, optimised
    shape = (str(each) for each in (kernel.shared.size, block, lanes, *options))
    key = ("units", kernel.name, *shape, native.version(), text)
    return _loaded(cache, key, make, kernel, block, lanes)


def build_kernel(
    cache: Cache, text: str, kernel: InlinedKernel, block: tuple[int, int, int], mode: Mode
) -> Loaded:
    """Return one kernel for one shape of block."""

    def make() -> bytes:
        given = kernel, INSTRUCTIONS, block
        if mode is Mode.WATCH and watches_products(kernel):
            translator: Translator = ProductWatcher(*given)
        else:
            translator = Translator(*given, mode)
        most = 0 if mode is Mode.WATCH else LARGE_IR
        return _compiled(translator, native.compile_well, most)

    kinds = ",".join(kind.value for kind in kernel.kinds)
    size = str(kernel.shared.size)
    key = ("kernel", kernel.name, size, str(block), mode.value, kinds, native.version(), text)
    return _loaded(cache, key, make, kernel, block)
