"""Small kernels of thread block clusters, for both devices: what each must compute, and what must
be found in those that are wrong."""

import itertools
from collections.abc import Callable

import numpy as np

from problem.cases import Matrix, Shape
from problem.launcher import LaunchLine
from tests.ptxcpu.runner import KERNELS as FILES

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


_PUBLISH = "__shared__ float s[256]; s[id] = mine; cluster.sync();"
_BARRIER = """__shared__ __align__(16) float s[256];
    __shared__ unsigned long long barrier;
    unsigned own = here(&barrier), other = there(own, rank ^ 1);
    if (id == 0) { init(own, COUNT); fence_init(); }
    cluster.sync();
    """

KERNELS: dict[str, tuple[str, Expected]] = {
    "mapa.u64": (
        kernel(_PUBLISH + "value = cluster.map_shared_rank(s, rank ^ 1)[id]; cluster.sync();"),
        _neighbours,
    ),
    "ld.shared::cluster": (
        kernel(
            _PUBLISH
            + """asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value)
                : "r"(there(here(s + id), rank ^ 1)) : "memory");
            cluster.sync();"""
        ),
        _neighbours,
    ),
    "st.shared::cluster": (
        kernel(
            """__shared__ float s[256];
            cluster.sync();
            store_there(s + id, mine, rank ^ 1);
            cluster.sync();
            value = s[id];"""
        ),
        _neighbours,
    ),
    "atomics": (
        kernel(
            """__shared__ int sums[3];
            if (id < 3) sums[id] = 0;
            cluster.sync();
            unsigned other = there(here(sums), rank ^ 1);
            int before;
            asm volatile("atom.shared::cluster.add.u32 %0, [%1], %2;" : "=r"(before)
                : "r"(other), "r"(id) : "memory");
            ASM("red.shared::cluster.add.u32 [%0], %1;", "r"(other + 4), "r"(1));
            atomicMax(cluster.map_shared_rank(sums + 2, rank ^ 1), id + (before < 0));
            cluster.sync();
            value = sums[0] + sums[1] + sums[2];"""
        ),
        _constant(255 * 128 + 256 + 255),
    ),
    "getctarank": (
        kernel(
            """__shared__ float s[256];
            float* other = cluster.map_shared_rank(s, rank ^ 1);
            unsigned by_generic, by_shared, own;
            asm("getctarank.u64 %0, %1;" : "=r"(by_generic) : "l"(other));
            asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(by_shared)
                : "r"(there(here(s), rank ^ 1)));
            asm("getctarank.shared::cluster.u32 %0, %1;" : "=r"(own) : "r"(here(s)));
            value = by_generic == (rank ^ 1) && by_shared == (rank ^ 1) && own == rank &&
                    there(here(s), rank) == here(s) && cluster.map_shared_rank(s, rank) == s;"""
        ),
        _constant(1),
    ),
    "isspacep": (
        kernel(
            """__shared__ float s[256];
            float* there = cluster.map_shared_rank(s, rank ^ 1);
            auto of_block = [](void* p) {
                int yes;
                asm("{ .reg .pred p; isspacep.shared::cta p, %1; selp.s32 %0, 1, 0, p; }"
                    : "=r"(yes) : "l"(p));
                return yes;
            };
            auto of_cluster = [](void* p) {
                int yes;
                asm("{ .reg .pred p; isspacep.shared::cluster p, %1; selp.s32 %0, 1, 0, p; }"
                    : "=r"(yes) : "l"(p));
                return yes;
            };
            value = of_block(s) && of_cluster(s) && !of_block(there) && of_cluster(there) &&
                    !of_block(C) && !of_cluster(C);"""
        ),
        _constant(1),
    ),
    "an address handed to the neighbour": (
        kernel(
            """__shared__ float s[256];
            __shared__ float* handed;
            s[id] = mine;
            cluster.sync();
            if (id == 0) *cluster.map_shared_rank(&handed, rank ^ 1) = s;
            cluster.sync();
            value = handed[id];
            cluster.sync();"""
        ),
        _neighbours,
    ),
    "a copy into the neighbour, which expects it": (
        kernel(
            _BARRIER.replace("COUNT", "1")
            + """if (id == 0) {
                expect(own, 1024);
                ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                    " [%0], [%1], %2, [%3];", "r"(there(here(s), rank ^ 1)), "l"(B + 256 * block),
                    "r"(1024), "r"(other));
            }
            await(own, 0);
            value = s[id];"""
        ),
        _part(lambda block: block ^ 1),
    ),
    "bytes expected for the neighbour": (
        kernel(
            _BARRIER.replace("COUNT", "2")
            + """if (id == 0) {
                ASM("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;",
                    "r"(other), "r"(512));
                ASM("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;",
                    "r"(other), "r"(512));
                ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
                    " [%0], [%1], %2, [%3];", "r"(there(here(s), rank ^ 1)), "l"(B + 256 * block),
                    "r"(1024), "r"(other));
                ASM("mbarrier.arrive.shared::cta.b64 _, [%0];", "r"(own));
            }
            await(own, 0);
            value = s[id];"""
        ),
        _part(lambda block: block ^ 1),
    ),
    "a copy from block to block": (
        kernel(
            _BARRIER.replace("COUNT", "1").replace("float s[256];", "float s[256], t[256];")
            + """t[id] = mine;
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            __syncthreads();
            if (id == 0) {
                expect(own, 1024);
                ASM("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                    " [%0], [%1], %2, [%3];", "r"(there(here(s), rank ^ 1)), "r"(here(t)),
                    "r"(1024), "r"(other));
            }
            await(own, 0);
            value = s[id];
            cluster.sync();"""
        ),
        _neighbours,
    ),
    "a multicast from each block to both": (
        kernel(
            _BARRIER.replace("COUNT", "1")
            + """if (id == 0) {
                expect(own, 1024);
                multicast(here(s + 128 * rank), B + 256 * (block & ~1) + 128 * rank, 512, own, 3);
            }
            await(own, 0);
            value = s[id];"""
        ),
        _part(lambda block: block & ~1),
    ),
    "a multicast to the other block alone": (
        kernel(
            _BARRIER.replace("COUNT", "1")
            + """if (id == 0) {
                expect(own, 1024);
                multicast(here(s), B + 256 * block, 1024, own, 1 << (rank ^ 1));
            }
            await(own, 0);
            value = s[id];"""
        ),
        _part(lambda block: block ^ 1),
    ),
    "stages that the neighbour must have emptied": (
        kernel(
            """__shared__ __align__(16) float s[2][256];
            __shared__ unsigned long long full[2], empty[2];
            if (id == 0) {
                for (int i = 0; i < 2; ++i) init(here(full + i), 1), init(here(empty + i), 2);
                fence_init();
            }
            cluster.sync();
            for (int step = 0; step < 6; ++step) {
                int stage = step % 2, parity = step / 2 % 2;
                if (id == 0) {
                    if (rank == 0) await(here(empty + stage), parity ^ 1);
                    expect(here(full + stage), 1024);
                    if (rank == 0)
                        multicast(here(s[stage]), A + 0 * step, 1024, here(full + stage), 3);
                }
                await(here(full + stage), parity);
                value += s[stage][id];
                __syncthreads();
                if (id == 0) arrive_there(there(here(empty + stage), 0));
            }
            cluster.sync();"""
        ),
        lambda block, A, B: np.asarray(sum([A[:16, :16].reshape(-1)] * 6)),
    ),
    "mbarriers behind a relaxed arrival": (
        kernel(
            _BARRIER.replace("COUNT", "256").replace("cluster.sync();", "arrive_relaxed(); wait();")
            + """store_there(s + id, mine, rank ^ 1);
            arrive_there(other);
            await(own, 0);
            value = s[id];"""
        ),
        _neighbours,
    ),
    "four blocks in a row": (
        kernel(
            _PUBLISH + "value = cluster.map_shared_rank(s, (rank + 3) % 4)[id]; cluster.sync();",
            (4, 1, 1),
        ),
        lambda block, A, B: _tile((block + 3) % 4, B),
    ),
}

RACES: dict[str, tuple[str, str]] = {
    "a write that no barrier orders": (
        kernel(
            _PUBLISH
            + "value = s[id]; cluster.map_shared_rank(s, rank ^ 1)[id] = 1; cluster.sync();"
        ),
        "with no barrier between them",
    ),
    "a read before the neighbour has begun": (
        kernel("__shared__ float s[256]; cluster.map_shared_rank(s, rank ^ 1)[id] = 1;"),
        "may not have begun",
    ),
    "a read when the neighbour may be over": (
        kernel(_PUBLISH + "value = cluster.map_shared_rank(s, rank ^ 1)[id];"),
        "may have returned",
    ),
    "an arrival that nobody waits for": (
        kernel(_BARRIER.replace("COUNT", "1") + "if (id == 0) arrive_there(other); value = 1;"),
        "may have returned",
    ),
    "a copy that nobody waits for": (
        kernel(
            _BARRIER.replace("COUNT", "1")
            + """if (id == 0 && rank == 0) multicast(here(s), B, 1024, own, 2);
            cluster.sync();"""
        ),
        "may have returned",
    ),
    "plain data behind a fence for mbarriers": (
        kernel(
            """__shared__ float s[256];
            s[id] = mine;
            fence_init();
            arrive_relaxed();
            wait();
            value = cluster.map_shared_rank(s, rank ^ 1)[id];
            cluster.sync();"""
        ),
        "with no barrier between them",
    ),
    "an arrival at an mbarrier that may not be initialised": (
        kernel(
            _BARRIER.replace("COUNT", "256")
            .replace("fence_init();", "")
            .replace("cluster.sync();", "arrive_relaxed(); wait();")
            + "arrive_there(other); await(own, 0); value = 1;"
        ),
        "with no barrier between them",
    ),
    "a multicast over what the neighbour reads": (
        kernel(
            _BARRIER.replace("COUNT", "1").replace(
                "cluster.sync();", "s[id] = mine; cluster.sync();"
            )
            + """value = s[id];
            if (rank == 0) __syncthreads();
            if (id == 0) expect(own, 1024);
            if (id == 0 && rank == 0) multicast(here(s), B, 1024, own, 3);
            await(own, 0);
            value += s[id];"""
        ),
        "with no barrier between them",
    ),
    "a multicast that is not waited for": (
        kernel(
            _BARRIER.replace("COUNT", "1").replace(
                "cluster.sync();", "s[id] = mine; cluster.sync();"
            )
            + """if (id == 0) expect(own, 1024);
            if (id == 0 && rank == 0) multicast(here(s), B, 1024, own, 3);
            cluster.sync();
            value = s[id];
            await(own, 0);"""
        ),
        "not waited for",
    ),
}
