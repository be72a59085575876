"""Small kernels of thread block clusters, for both devices: what each must compute, and what must
be found in those that are wrong."""

import itertools
from collections.abc import Callable

import numpy as np

from problem.cases import Matrix, Shape
from problem.launcher import LaunchLine
from tests.ptxcpu.runner import KERNELS as FILES
from tests.sources import named_parts

_HEAD = (FILES / "cluster.cuh").read_text()


def kernel(body: str, cluster: tuple[int, ...] = (2, 1, 1)) -> str:
    """A kernel that gives C, thread by thread, the `value` that the body computes. `mine` is the
    thread's own element of B, `id` its number, `rank` that of its block in the cluster."""
    return f"""{_HEAD}
extern "C" __global__ void __cluster_dims__({", ".join(map(str, cluster))})
matrix_multiplication_kernel(const float* A, const float* B, float* C, int M, int N, int K) {{
    Cluster cluster;
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    int id = threadIdx.y * 16 + threadIdx.x, block = blockIdx.x;
    unsigned rank = cluster.block_rank();
    float mine = row < N && column < K ? B[row * K + column] : 0, value = 0;
    {body}
    if (row < M && column < K) C[row * K + column] = value;
}}
"""


SIZES = [(2, 1, 1), (1, 2, 1), (2, 2, 1), (1, 4, 1), (8, 1, 1), (1, 1, 2), (3, 2, 1)]

_REGISTERS = ("ctarank", "ctaid.x", "ctaid.y", "ctaid.z")


def places(cluster: tuple[int, int, int]) -> str:
    """Each block's place in its cluster, its cluster's in the grid, and how many there are of both,
    as one number. Blocks along z share a tile of C, row by row in turn: all of them write it, in
    an order that nothing says."""
    names = [f"cluster_{name}" for name in _REGISTERS] + ["cluster_nctarank"]
    names += [f"cluster_nctaid.{axis}" for axis in "xyz"]
    names += [f"{name}.{axis}" for name in ("clusterid", "nclusterid") for axis in "xyz"]
    reads = "".join(
        f'asm("mov.u32 %0, %%{name};" : "=r"(read)); sum = sum * 9 + read;' for name in names
    )
    in_turn = "if (threadIdx.y % gridDim.z != blockIdx.z) return;"
    return kernel(f"unsigned read, sum = 0; {reads} value = sum & 0xffffff; {in_turn}", cluster)


def expected_places(shape: Shape, cluster: tuple[int, int, int]) -> Matrix:
    grid = LaunchLine(cluster=cluster).grid(shape.M, shape.K)
    C = np.zeros((shape.M, shape.K), np.float32)
    for x, y, z in itertools.product(*map(range, grid)):
        block = (x, y, z)
        own = [b % c for b, c in zip(block, cluster, strict=True)]
        rank = own[0] + cluster[0] * (own[1] + cluster[1] * own[2])
        words = [rank, *own, int(np.prod(cluster)), *cluster]
        words += [b // c for b, c in zip(block, cluster, strict=True)]
        words += [n // c for n, c in zip(grid, cluster, strict=True)]
        number = 0
        for word in words:
            number = (number * 9 + word) & 0xFFFFFFFF
        tile = C[16 * y : 16 * y + 16, 16 * x : 16 * x + 16]
        tile[z :: grid[2]] = number & 0xFFFFFF
    return C


Expected = Callable[[int, Matrix, Matrix], Matrix]


def _tile(block: int, B: Matrix) -> Matrix:
    return B[:16, 16 * block : 16 * block + 16].reshape(-1)


def _neighbours(block: int, A: Matrix, B: Matrix) -> Matrix:
    """The elements of B that the other block of the cluster reads."""
    return _tile(block ^ 1, B)


def _part(of: Callable[[int], int]) -> Expected:
    """256 elements of B in a row, chosen by the block."""
    return lambda block, A, B: B.reshape(-1)[256 * of(block) :][:256]


def _constant(number: float) -> Expected:
    return lambda block, A, B: np.full(256, number, np.float32)


_BODIES = named_parts(FILES / "clusters.cu.in")


def _named(name: str) -> str:
    return kernel(_BODIES[name], (4, 1, 1) if name == "four blocks in a row" else (2, 1, 1))


_EXPECTED: dict[str, Expected] = {
    "mapa.u64": _neighbours,
    "ld.shared::cluster": _neighbours,
    "st.shared::cluster": _neighbours,
    "atomics": _constant(255 * 128 + 256 + 255),
    "getctarank": _constant(1),
    "isspacep": _constant(1),
    "an address handed to the neighbour": _neighbours,
    "a copy into the neighbour, which expects it": _part(lambda block: block ^ 1),
    "bytes expected for the neighbour": _part(lambda block: block ^ 1),
    "a copy from block to block": _neighbours,
    "a multicast from each block to both": _part(lambda block: block & ~1),
    "a multicast to the other block alone": _part(lambda block: block ^ 1),
    "stages that the neighbour must have emptied": lambda block, A, B: np.asarray(
        sum([A[:16, :16].reshape(-1)] * 6)
    ),
    "mbarriers behind a relaxed arrival": _neighbours,
    "four blocks in a row": lambda block, A, B: _tile((block + 3) % 4, B),
}
KERNELS = {name: (_named(name), expected) for name, expected in _EXPECTED.items()}

_MESSAGES = {
    "a write that no barrier orders": "with no barrier between them",
    "a read before the neighbour has begun": "may not have begun",
    "a read when the neighbour may be over": "may have returned",
    "an arrival that nobody waits for": "may have returned",
    "a copy that nobody waits for": "may have returned",
    "plain data behind a fence for mbarriers": "with no barrier between them",
    "an arrival at an mbarrier that may not be initialised": "with no barrier between them",
    "a multicast over what the neighbour reads": "with no barrier between them",
    "a multicast that is not waited for": "not waited for",
}
RACES = {name: (_named(name), words) for name, words in _MESSAGES.items()}
