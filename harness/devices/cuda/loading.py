"""Load machine code so that it can be launched."""

from __future__ import annotations

from typing import Any

import cupy

from harness.protocol.compiler import Kernel

_WITHOUT_ASKING = 48 * 1024
"""The largest shared memory of a launch, in bytes, that needs no attribute."""


def load_function(kernel: Kernel) -> Any:
    """Return the kernel as a CuPy function. Raises the errors in harness.devices.cuda.errors."""
    module = cupy.cuda.function.Module()
    module.load(kernel.cubin)
    function = module.get_function(kernel.entry)
    if kernel.facts.resources.static_shared_bytes + kernel.launch.shared_memory > _WITHOUT_ASKING:
        cupy.cuda.driver.funcSetAttribute(
            function.ptr,
            cupy.cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
            kernel.launch.shared_memory,
        )
    return function
