"""Load machine code so that it can be launched, each time with the same variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from cuda.bindings import driver

from harness.protocol.compiler import Kernel, ModuleVariable

_WITHOUT_ASKING = 48 * 1024
"""The largest shared memory of a launch, in bytes, that needs no attribute."""

_TO_HOST = 2


class Loaded:
    """A kernel on the GPU. Loading it raises the errors in harness.devices.cuda.errors."""

    def __init__(self, kernel: Kernel) -> None:
        self._module = cupy.cuda.function.Module()
        self._module.load(kernel.cubin)
        self.function = self._module.get_function(kernel.entry)
        shared = kernel.facts.resources.static_shared_bytes + kernel.launch.shared_memory
        if shared > _WITHOUT_ASKING:
            cupy.cuda.driver.funcSetAttribute(
                self.function.ptr,
                cupy.cuda.driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                kernel.launch.shared_memory,
            )
        self._variables = _found(self._module, kernel.variables)

    def reset_variables(self) -> None:
        """Give every `__device__` variable its initial value, without waiting for the GPU.

        So a launch cannot count the launches before it, or keep their results.
        """
        for address, size, image in self._variables:
            if image is None:
                _check(driver.cuMemsetD8Async(address, 0, size, 0))
            else:
                _check(driver.cuMemcpyHtoD(address, image.ctypes.data, size))


def _found(
    module: Any, variables: Sequence[ModuleVariable]
) -> list[tuple[int, int, np.ndarray[Any, Any] | None]]:
    """Return address, size and image of each variable in a module; the image of zeros is None."""
    found: list[tuple[int, int, np.ndarray[Any, Any] | None]] = []
    for variable in variables:
        status, address, size = driver.cuModuleGetGlobal(module.ptr, variable.name.encode())
        if status == driver.CUresult.CUDA_ERROR_NOT_FOUND:
            continue  # the assembler has removed a variable that nothing uses
        _check((status,))
        image = None
        if not variable.is_zero:
            image = np.empty(int(size), np.uint8)
            cupy.cuda.runtime.memcpy(image.ctypes.data, int(address), image.nbytes, _TO_HOST)
        found.append((int(address), int(size), image))
    return found


def _check(answer: tuple[Any, ...]) -> None:
    if answer[0] != driver.CUresult.CUDA_SUCCESS:
        raise cupy.cuda.driver.CUDADriverError(int(answer[0]))
