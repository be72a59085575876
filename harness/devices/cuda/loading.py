"""Load machine code so that it can be launched, each time with the same variables."""

from collections.abc import Iterable
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
        self._variables = _found(self._module, kernel.variables)

    def reset_variables(self) -> None:
        """Give every `__device__` variable its initial value, in the order of the stream.

        So a launch cannot count the launches before it, or keep their results.
        """
        runtime = cupy.cuda.runtime
        for each in self._variables:
            if each.image is None:
                runtime.memsetAsync(each.address, 0, each.size, _DEFAULT_STREAM)
            else:
                place = each.image.ctypes.data
                runtime.memcpyAsync(each.address, place, each.size, _TO_DEVICE, _DEFAULT_STREAM)


@dataclass(frozen=True, slots=True)
class _Variable:
    """A variable of a loaded module. No image means that it is zero."""

    address: int
    size: int
    image: np.ndarray[Any, Any] | None


def _found(module: Any, variables: Iterable[ModuleVariable]) -> list[_Variable]:
    """Find the variables in a module, and keep their initial values.

    Each is copied by itself: a copy may not cross from one variable into the next. This uses CuPy,
    since newer bindings request functions that an older driver lacks, and compute-sanitizer reports
    these errors as the kernel's.
    """
    found: list[_Variable] = []
    for variable in variables:
        address = int(module.get_global_var(variable.name))
        image = None
        if not variable.is_zero:
            image = np.empty(variable.size, np.uint8)
            cupy.cuda.runtime.memcpy(image.ctypes.data, address, image.size, _TO_HOST)
        found.append(_Variable(address, variable.size, image))
    return found
