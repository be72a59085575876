"""Why the checker and cuBLAS have processes of their own: a kernel can rewrite its neighbours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ATTACK = r'''
import ctypes, os, sys
# It tells where machine code lies, which an attacker would have to find out.
sanitizer = ctypes.CDLL(sys.argv[1])
callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p)
ignored, subscriber = callback(lambda *_: None), ctypes.c_void_p()
assert sanitizer.sanitizerSubscribe(ctypes.byref(subscriber), ignored, None) == 0
import cupy, numpy as np
module = cupy.RawModule(code="""
extern "C" __global__ void neighbour(int* out, int x) { *out = x * 1234567; }
extern "C" __global__ void attack(volatile unsigned* code, int words) {
    for (int i = 0; i < words; i++)
        if (code[i] == 1234567u) code[i] = 7654321u;
    __threadfence_system();
}
""")
neighbour, out = module.get_function("neighbour"), cupy.zeros(1, np.int32)
neighbour((1,), (1,), (out, np.int32(1)))
before = int(out.get()[0])
place, size = ctypes.c_uint64(), ctypes.c_uint64()
found = sanitizer.sanitizerGetFunctionPcAndSize(
    ctypes.c_void_p(module.module.ptr), b"neighbour", ctypes.byref(place), ctypes.byref(size)
)
assert found == 0
words = np.int32(size.value // 4)
module.get_function("attack")((1,), (1,), (np.uint64(place.value), words))
neighbour((1,), (1,), (out, np.int32(1)))
print(before, int(out.get()[0]), flush=True)
os._exit(0)
'''


def test_a_kernel_can_rewrite_the_machine_code_of_another() -> None:
    from harness.devices.cuda import sanitizer

    toolkits = [Path(program).resolve().parent.parent for program in sanitizer.programs()]
    libraries = (each for kit in toolkits for each in kit.rglob("libsanitizer-public.so"))
    library = next(libraries, None)
    if library is None:
        pytest.skip("compute-sanitizer's library is missing")
    command = [sys.executable, "-c", ATTACK, library]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert answer.stdout.split() == ["1234567", "7654321"]


def test_the_kernels_process_has_no_machine_code_of_the_judges() -> None:
    loaded = "import sys, harness.devices.cuda.device; print(*sys.modules)"
    answer = subprocess.run([sys.executable, "-c", loaded], capture_output=True, check=True)
    assert b"problem.gpu" not in answer.stdout
