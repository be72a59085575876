"""Load machine code so that it can be launched, each time with the same variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from harness.protocol.compiler import Kernel, ModuleVariable

_WITHOUT_ASKING = 48 * 1024
"""The largest shared memory of a launch, in bytes, that needs no attribute."""

_TO_DEVICE, _TO_HOST = 1, 2
_DEFAULT_STREAM = 0


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
        self._variables = [_found(self._module, variable) for variable in kernel.variables]

    def reset_variables(self) -> None:
        """Give every `__device__` variable its initial value.

        So a launch cannot count the launches before it, or keep their results.
        """
        runtime = cupy.cuda.runtime
        for variable in self._variables:
            if variable.image is None:
                runtime.memsetAsync(variable.address, 0, variable.size, _DEFAULT_STREAM)
            else:
                place = variable.image.ctypes.data
                runtime.memcpy(variable.address, place, variable.size, _TO_DEVICE)


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable of a loaded module; the image of zeros is None."""

    address: int
    size: int
    image: np.ndarray[Any, Any] | None


def _found(module: Any, variable: ModuleVariable) -> _Variable:
    """Find a variable in a module, and keep its initial value.

    This uses CuPy, since newer bindings ask an older driver for functions that it lacks, and
    compute-sanitizer takes these errors for the kernel's.
    """
    address = int(module.get_global_var(variable.name))
    image = None
    if not variable.is_zero:
        image = np.empty(variable.size, np.uint8)
        cupy.cuda.runtime.memcpy(image.ctypes.data, address, variable.size, _TO_HOST)
    return _Variable(address, variable.size, image)
