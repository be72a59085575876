"""GPUs that a kernel can be explained for without having one."""

from __future__ import annotations

from harness.judge.explain.gpu import H100, MIB, Gpu

GPUS = (
    H100,
    Gpu("NVIDIA H100 PCIe", "sm_90a", 114, 1755, 2039, 50 * MIB),
    Gpu("NVIDIA H200", "sm_90a", 132, 1980, 4917, 50 * MIB),
    Gpu("NVIDIA A100-SXM4-80GB", "sm_80", 108, 1410, 2039, 40 * MIB),
    Gpu("NVIDIA A100-SXM4-40GB", "sm_80", 108, 1410, 1555, 40 * MIB),
    Gpu("NVIDIA A10", "sm_86", 72, 1695, 600, 6 * MIB, full_tensor_rate=True),
    Gpu("NVIDIA RTX A6000", "sm_86", 84, 1800, 768, 6 * MIB, full_tensor_rate=True),
    Gpu("NVIDIA L4", "sm_89", 58, 2040, 300, 48 * MIB, full_tensor_rate=True),
    Gpu("NVIDIA L40S", "sm_89", 142, 2520, 864, 96 * MIB, full_tensor_rate=True),
    Gpu("NVIDIA GeForce RTX 3060", "sm_86", 28, 1777, 360, 3 * MIB),
    Gpu("NVIDIA GeForce RTX 3080", "sm_86", 68, 1710, 760, 5 * MIB),
    Gpu("NVIDIA GeForce RTX 3090", "sm_86", 82, 1695, 936, 6 * MIB),
    Gpu("NVIDIA GeForce RTX 4060", "sm_89", 24, 2460, 272, 24 * MIB),
    Gpu("NVIDIA GeForce RTX 4070", "sm_89", 46, 2475, 504, 36 * MIB),
    Gpu("NVIDIA GeForce RTX 4080", "sm_89", 76, 2505, 717, 64 * MIB),
    Gpu("NVIDIA GeForce RTX 4090", "sm_89", 128, 2520, 1008, 72 * MIB),
    Gpu("NVIDIA T4", "sm_75", 40, 1590, 320, 4 * MIB),
)
"""Multiprocessors, boost clock in MHz, bandwidth of the device memory in GB/s and size of the L2
cache, by NVIDIA's white papers on Turing, A100, GA102, Ada and H100 and the data sheets of the
cards; the figures were not compared with these documents again, and nothing was measured on
these GPUs but on the first."""


def named(text: str) -> Gpu:
    """Return the GPU whose name holds the words. Raises ValueError."""
    words = text.lower().split()
    for whole in (True, False):
        for gpu in GPUS:
            name = gpu.name.lower()
            if words and all(word in (name.split() if whole else name) for word in words):
                return gpu
    known = ", ".join(gpu.name.removeprefix("NVIDIA ") for gpu in GPUS)
    raise ValueError(f"no GPU called {text!r} is known; known: {known}")
