"""The peak rates of GPUs per clock, with which a kernel is compared."""

from __future__ import annotations

from dataclasses import dataclass

from harness.compiling.occupancy import multiprocessor
from harness.protocol.report import DeviceInfo

WARP_INSTRUCTIONS = 4
"""A multiprocessor's four schedulers start one warp instruction each a clock."""

MIB = 2**20

L2_BYTES = 32
"""A multiprocessor's share of the L2 cache's bandwidth, bytes a clock: on an H100, `ncu` gives the
traffic of solutions/02_shared_tile.cu (2.0 TB/s) as 22 % of the peak. The same is assumed of other
GPUs, on which we did not measure it."""

MMA_SYNC_SHARE = 0.63
"""The share of the tensor cores' peak on sm_90 that mma.sync reaches ("Dissecting the NVIDIA Hopper
Architecture through Microbenchmarking and Multiple Level Analysis"). Only wgmma reaches all."""

SUSTAINED = 0.75
"""The share of the tensor cores' peak at the highest clock that an H100 sustains. Under this load
its power limit lowers the clock. Three FP16 products of the ranked size take at least 1.55 ms, by
our own measurements, where 1.16 ms would be the peak."""

_TENSOR_MACS = {
    75: {"FP16": 512, "INT8": 1024},
    86: {"TF32": 128, "FP16": 256, "BF16": 256, "INT8": 1024},
    89: {"TF32": 128, "FP16": 256, "BF16": 256, "INT8": 1024},
    80: {"TF32": 512, "FP16": 1024, "BF16": 1024, "INT8": 2048},
    90: {"TF32": 1024, "FP16": 2048, "BF16": 2048, "INT8": 4096, "FP8": 4096},
}
"""Dense multiply-adds that the tensor cores of a multiprocessor do in a clock (the white papers on
Turing, A100, GA102, Ada and H100; of 8.6 and 8.9 those of a GeForce that adds in FP32)."""


INSTRUCTION_CACHE = 128 * 1024
"""Bytes of the instruction cache of a multiprocessor ("Dissecting the NVIDIA Volta GPU Architecture
via Microbenchmarking", L1.5; taken to be as large on later GPUs)."""

FETCHED = 4.6
"""Bytes of instructions that come from beyond that cache in a clock, for the warps of a block
together. Fitted to one kernel on an H200: large_unroll of the tests, whose loop has 164 KiB."""

_L1_KIB = {
    **{75: 96, 80: 192, 86: 128, 87: 192, 89: 128, 90: 256},
    **{100: 256, 103: 256, 110: 256, 120: 128, 121: 128},
}
"""The unified data cache of a multiprocessor (CUDA C++ Programming Guide, "Compute Capabilities").
"""


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU to explain a kernel for."""

    name: str
    arch: str
    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: float
    l2_bytes: int = 50 * MIB
    full_tensor_rate: bool = False
    """Whether the tensor cores of a GPU of compute capability 8.6 or 8.9 add in FP32 at the full
    rate, as on professional cards; GeForce cards do so at half of it."""

    @property
    def number(self) -> int:
        return int(self.arch.removeprefix("sm_").rstrip("af"))

    @property
    def l1_bytes(self) -> int:
        """Bytes of a multiprocessor's L1 cache and shared memory together."""
        return _L1_KIB[self.number] * 1024

    @property
    def memory_bytes_per_clock(self) -> float:
        """A multiprocessor's share of the bandwidth of the device memory."""
        return self.memory_gb_per_s * 1e6 / self.clocks_per_ms / self.multiprocessors

    @property
    def l1_passes(self) -> float:
        """Passes of 128 bytes that the L1 cache and shared memory take together in a clock: half
        as many on Turing, by "Dissecting the NVidia Turing T4 GPU via Microbenchmarking"."""
        return 0.5 if self.number == 75 else 1.0

    @property
    def fp32_lanes(self) -> int:
        return multiprocessor(self.arch).fp32_lanes

    @property
    def clocks_per_ms(self) -> float:
        return self.clock_mhz * 1e3

    @property
    def fp32_tflops(self) -> float:
        return self.tflops(self.fp32_lanes)

    def tensor_macs(self, kind: str) -> int | None:
        """Multiply-adds of a type in a clock and multiprocessor, where they are known."""
        peak = _TENSOR_MACS.get(self.number, {}).get(kind)
        return 2 * peak if peak and self.full_tensor_rate and kind != "INT8" else peak

    def tflops(self, macs: float) -> float:
        """Return the TFLOP/s of so many multiply-adds per clock and multiprocessor."""
        return 2 * macs * self.multiprocessors * self.clock_mhz / 1e6

    def gb_per_s(self, bytes_per_clock: float) -> float:
        """Return the GB/s of so many bytes per clock and multiprocessor."""
        return bytes_per_clock * self.multiprocessors * self.clock_mhz / 1e3


H100 = Gpu("NVIDIA H100 80GB HBM3", "sm_90a", 132, 1980, 3352.0)
"""The GPU that is assumed if the machine has none; the ladder's figures are from an H100."""


def gpu_of(device: DeviceInfo | None) -> Gpu | None:
    """The GPU that a report was made on; None for another device, or one that says too little."""
    if device is None or not (device.multiprocessors and device.max_clock_mhz):
        return None
    if device.memory_gb_per_s is None:
        return None
    return Gpu(
        device.name,
        device.arch,
        device.multiprocessors,
        device.max_clock_mhz,
        device.memory_gb_per_s,
        device.l2_bytes or H100.l2_bytes,
    )
