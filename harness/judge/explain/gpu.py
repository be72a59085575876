"""The GPUs for which a kernel can be explained, and their peak rates per clock."""

from dataclasses import dataclass

from harness.compiling.occupancy import multiprocessor, number_of
from harness.protocol.report import DeviceInfo

WARP_INSTRUCTIONS = 4
"""A multiprocessor's four schedulers start one warp instruction each a clock."""

MIB = 2**20

L2_BYTES = 32
"""A multiprocessor's share of the L2 cache's bandwidth, in bytes per clock. On an H100, `ncu` gives
the traffic of solutions/02_shared_tile.cu (2.0 TB/s) as 22 % of the peak. The same is assumed for
other GPUs, on which we did not measure it."""

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
Turing, A100, GA102, Ada and H100). The rates of 8.6 and 8.9 are those of a GeForce that adds in
FP32."""


INSTRUCTION_CACHE = 128 * 1024
"""Bytes of the instruction cache of a multiprocessor ("Dissecting the NVIDIA Volta GPU Architecture
via Microbenchmarking", L1.5; taken to be as large on later GPUs)."""

FETCHED = 4.6
"""Bytes of instructions that come from beyond that cache in a clock, for the warps of a block
together. Fitted to one kernel on an H200: large_unroll of the tests, whose loop has 164 KiB."""


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    arch: str
    multiprocessors: int
    clock_mhz: int
    memory_gb_per_s: float
    l2_bytes: int = 50 * MIB
    full_tensor_rate: bool = False
    """Whether the tensor cores of a GPU of compute capability 8.6 or 8.9 add in FP32 at the full
    rate, as on professional cards. GeForce cards do so at half of it."""

    @property
    def number(self) -> int:
        return number_of(self.arch)

    @property
    def l1_bytes(self) -> int:
        """Bytes of a multiprocessor's L1 cache and shared memory together."""
        return multiprocessor(self.arch).cache

    @property
    def memory_bytes_per_clock(self) -> float:
        """A multiprocessor's share of the bandwidth of the device memory."""
        return self.memory_gb_per_s * 1e6 / self.clocks_per_ms / self.multiprocessors

    @property
    def l1_passes(self) -> float:
        """Passes of 128 bytes that the L1 cache and shared memory take together in a clock. Turing
        takes half as many, by "Dissecting the NVidia Turing T4 GPU via Microbenchmarking"."""
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
        """Return the multiply-adds of a type per clock and multiprocessor; None if unknown."""
        peak = _TENSOR_MACS.get(self.number, {}).get(kind)
        return 2 * peak if peak and self.full_tensor_rate and kind != "INT8" else peak

    def tflops(self, macs: float) -> float:
        """Return the TFLOP/s of so many multiply-adds per clock and multiprocessor."""
        return 2 * macs * self.multiprocessors * self.clock_mhz / 1e6

    def gb_per_s(self, bytes_per_clock: float) -> float:
        """Return the GB/s of so many bytes per clock and multiprocessor."""
        return bytes_per_clock * self.multiprocessors * self.clock_mhz / 1e3


H100 = Gpu("NVIDIA H100 80GB HBM3", "sm_90a", 132, 1980, 3352.0)
"""The GPU that is assumed if the machine has none; figures in solutions/ are from an H100."""


def gpu_of(device: DeviceInfo | None) -> Gpu | None:
    """Return the GPU that a report was made on; None for another device, or one that says too
    little."""
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
cache. They are from NVIDIA's white papers on Turing, A100, GA102, Ada and H100 and the data sheets
of the cards. The figures were not compared with these documents again. We measured kernels on
the H100 80GB HBM3 and the H200 only."""


def gpu_named(text: str) -> Gpu:
    """Return the GPU whose name holds the words. Raises ValueError."""
    words = text.lower().split()
    for whole in (True, False):
        for gpu in GPUS:
            name = gpu.name.lower()
            if words and all(word in (name.split() if whole else name) for word in words):
                return gpu
    known = ", ".join(gpu.name.removeprefix("NVIDIA ") for gpu in GPUS)
    raise ValueError(f"no GPU called {text!r} is known; known: {known}")
