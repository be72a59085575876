"""Language features that kernels use: each one compiles, runs, and has no finding."""

import numpy as np
import pytest

from problem.cases import Matrix, Shape
from tests.ptxcpu.runner import Runner, inputs

SHAPE = Shape(32, 32, 32)
HEAD = """extern "C" __global__ void matrix_multiplication_kernel(
    const float* A, const float* B, float* C, int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    int id = threadIdx.y * 16 + threadIdx.x;
    float s = 0.0f;
"""
TAIL = "\n    if (row < M && column < K) C[row * K + column] = s;\n}"

# name: the body of the kernel, after declarations and "KERNEL:" if it needs any
FEATURES = {
    "atomics of other scopes": """
__device__ int total; __device__ double sum;
KERNEL:
    __shared__ int count;
    if (id == 0) count = 0;
    __syncthreads();
    atomicAdd_block(&count, 1);
    atomicAdd_system(&total, atomicCAS_block(&count, -1, 0) < 0);
    atomicAdd_system(&sum, 1.0);
    atomicCAS_system(&total, 1, 2);
    __syncthreads();
    s = atomicMax_block(&count, 0);
    if (s != 256) __trap();""",
    "size of a warp": """if (warpSize != 32) __trap();
    for (int i = warpSize / 2; i > 0; i /= 2) s += __shfl_down_sync(0xffffffff, 1.0f, i);""",
    "cooperative groups": """
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
KERNEL:
    auto block = cooperative_groups::this_thread_block();
    auto warp = cooperative_groups::tiled_partition<32>(block);
    s = cooperative_groups::reduce(warp, (float)(id % 32), cooperative_groups::plus<float>());
    block.sync();""",
    "coalesced group": """
#include <cooperative_groups.h>
KERNEL:
    if (id % 2 == 0) {
        auto group = cooperative_groups::coalesced_threads();
        s = group.size();
        group.sync();
    }""",
    "memcpy_async": """
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
KERNEL:
    __shared__ float copy[256];
    auto block = cooperative_groups::this_thread_block();
    cooperative_groups::memcpy_async(block, copy, A, sizeof copy);
    cooperative_groups::wait(block);
    s = copy[255 - id];""",
    "pipeline primitives": """
#include <cuda_pipeline.h>
KERNEL:
    __shared__ __align__(16) float stage[3][256];
    for (int i = 0; i < 3; ++i) {
        __pipeline_memcpy_async(&stage[i][id], &A[256 * i + id], 4);
        __pipeline_commit();
    }
    for (int i = 0; i < 3; ++i) {
        __pipeline_wait_prior(2 - i);
        __syncthreads();
        s += stage[i][id ^ 1];
    }""",
    "cuda::pipeline": """
#include <cuda/pipeline>
KERNEL:
    __shared__ __align__(16) float copy[256];
    auto pipeline = cuda::make_pipeline();
    pipeline.producer_acquire();
    cuda::memcpy_async(&copy[id], &A[id], sizeof(float), pipeline);
    pipeline.producer_commit();
    pipeline.consumer_wait();
    __syncthreads();
    s = copy[255 - id];
    pipeline.consumer_release();""",
    "cuda::barrier": """
#include <cuda/barrier>
KERNEL:
    __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
    __shared__ float copy[256];
    if (id == 0) init(&barrier, 256);
    __syncthreads();
    copy[id] = A[id];
    barrier.arrive_and_wait();
    s = copy[255 - id];""",
    "cuda::atomic_ref": """
#include <cuda/atomic>
KERNEL:
    __shared__ int total;
    if (id == 0) total = 0;
    __syncthreads();
    cuda::atomic_ref<int, cuda::thread_scope_block>(total).fetch_add(id);
    __syncthreads();
    s = total;""",
    "atomics in shared memory": """__shared__ int t[6];
    if (id < 6) t[id] = 0;
    __syncthreads();
    atomicAdd(&t[0], id); atomicMax(&t[1], id); atomicMin(&t[2], -id);
    atomicOr(&t[3], id); atomicXor(&t[4], id); atomicInc((unsigned*)&t[5], 1000);
    __syncthreads();
    s = t[0] + t[1] + t[2] + t[3] + t[4] + t[5];""",
    "constant memory": """
__constant__ float table[4] = {1, 2, 3, 4};
KERNEL:
    s = table[id % 4];""",
    "structs that begin with a pointer": """
__device__ float numbers[2] = {5, 7};
struct S { float* p; int n; char c; };
__constant__ S table[2] = {{numbers + 1, 2, 3}, {numbers, 4, 6}};
KERNEL:
    S x = table[id % 2]; s = *x.p * x.n + x.c;""",
    "a table of functions": """
__device__ float twice(float x) { return 2 * x; }
__device__ float next(float x) { return x + 1; }
__device__ int other(int x) { return x; }
__device__ float (*table[])(float) = {twice, next};
__device__ int (*another)(int) = other;
KERNEL:
    s = table[id % 2](table[1](id)) + another(0);""",
    "a function chosen at run time": """
__device__ __noinline__ void add(float& x, float y) { x += y; }
__device__ __noinline__ void multiply(float& x, float y) { x *= y; }
KERNEL:
    void (*f)(float&, float) = id % 2 ? add : multiply; s = id; if (row < M) f(s, 3);""",
    "virtual functions": """
struct Square { float x; __device__ virtual float area() { return x * x; } };
struct Disc : Square { __device__ float area() override { return 3 * x * x; } };
KERNEL:
    Square a; Disc b; a.x = b.x = id; Square* one = id % 2 ? &b : &a; s = one->area();""",
    "switch": """switch (id % 6) {
        case 0: s = 5; break;
        case 1: s = A[0]; break;
        case 2: s = 7; break;
        case 3: s = expf(A[1]); break;
        case 4: s = id;
    }""",
    "mathematics": """float x = id * 0.01f + 1.0f;
    s = expf(x) + logf(x) + sinf(x) + cosf(x) + powf(x, 1.3f) + sqrtf(x) + rsqrtf(x) +
        tanhf(x) + erff(x) + fmodf(x, 0.7f) + floorf(x) + roundf(x) + cbrtf(x) +
        atan2f(x, 2) + exp2f(x);""",
    "double precision": """double x = id * 0.01 + 1.0;
    s = exp(x) + log(x) + sin(x) + sqrt(x) + pow(x, 1.1) + x / 3;""",
    "half2": """
#include <cuda_fp16.h>
KERNEL:
    __half2 h = __floats2half2_rn(id, 1.0f); h = __hfma2(h, h, h); s = __low2float(h);""",
    "votes": """s = __popc(__ballot_sync(~0u, id & 1)) +
        __any_sync(~0u, id == 3) + __all_sync(~0u, 1) +
        __syncthreads_count(id & 1) + __syncthreads_and(1) + __syncthreads_or(id == 3) +
        __reduce_add_sync(~0u, 1) + __popc(__match_any_sync(~0u, id / 4));""",
    "quantising to 8 bits": """int low, high;
    float x = id - 300.5f;
    asm("cvt.rni.sat.s8.f32 %0, %1;" : "=r"(low) : "f"(x));
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(high) : "f"(fabsf(x)));
    int packed;
    asm("cvt.pack.sat.s8.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(high), "r"(low), "r"(0));
    s = __byte_perm(packed, 0, 0x4401) + max((unsigned)id, 40u) +
        (__float_as_uint(1.5f) >> 23) + exp2f(id % 3) + __dp4a(packed, 0x0101, 0);""",
    "vector atomics": """
__device__ float4 sums[2];
KERNEL:
    float4 one = make_float4(1, 2, 3, 4);
    atomicAdd(&sums[0], one);
    asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};"
                 :: "l"(&sums[1]), "f"(one.x), "f"(one.y), "f"(one.z), "f"(one.w) : "memory");
    asm volatile("red.global.add.v2.f32 [%0], {%1, %2};"
                 :: "l"(&sums[1]), "f"(one.x), "f"(one.y) : "memory");
    __syncthreads();
    volatile float* sum = &sums[0].x;
    s = sum[3] >= 1024 && sum[5] >= 1024 && sum[7] >= 1024;""",
    "reductions of a warp": """s = __reduce_max_sync(~0u, (unsigned)id) +
        __reduce_min_sync(~0u, -id) +
        (__reduce_or_sync(~0u, id & 3) ^ __reduce_and_sync(~0u, id | 3));
    unsigned exponent = __reduce_max_sync(~0u, __float_as_uint(fabsf(A[id])) >> 23);
    s += exponent > 255;""",
    "local array": """float x[32];
    for (int i = 0; i < 32; ++i) x[i] = i * i;
    s = x[(row * column) & 31];""",
    "templates": """
template <int N> __device__ float sum(const float* x) {
    float s = 0;
    for (int i = 0; i < N; ++i) s += x[i];
    return s;
}
KERNEL:
    s = sum<7>(A);""",
    "structs by value": """
struct S { float x[5]; int n; };
__device__ __noinline__ S make(int n) {
    S s;
    for (int i = 0; i < 5; ++i) s.x[i] = i * n;
    s.n = n;
    return s;
}
__device__ __noinline__ float use(S s, int i) { return s.x[i % 5] * s.n; }
KERNEL:
    s = use(make(3), id);""",
    "named barriers": """__shared__ float x[256];
    x[id] = id;
    if (id < 128) asm volatile("bar.arrive 3, 256;" ::: "memory");
    else asm volatile("bar.sync 3, 256;" ::: "memory");
    s = id < 128 ? id : x[id - 128];""",
}

EXPECTED = {  # of C[0][0], thread 0 of block 0, and of thread 37
    "cooperative groups": (496, 496),
    "coalesced group": (16, 0),
    "cuda::atomic_ref": (32640, 32640),
    "atomics in shared memory": (32640 + 255 - 255 + 255 + 0 + 256, 32640 + 255 - 255 + 255 + 256),
    "constant memory": (1, 2),
    "structs that begin with a pointer": (7 * 2 + 3, 5 * 4 + 6),
    "a table of functions": (2, 39),
    "a function chosen at run time": (0, 40),
    "virtual functions": (0, 3 * 37 * 37),
    "half2": (0, 37 * 37 + 37),
    "votes": (16 + 1 + 1 + 128 + 1 + 1 + 32 + 4, 16 + 0 + 1 + 128 + 1 + 1 + 32 + 4),
    "quantising to 8 bits": (0x807F + 40 + 127 + 1 + 127 - 128, 0x807F + 40 + 127 + 2 + 127 - 128),
    "vector atomics": (1, 1),
    "reductions of a warp": (31 - 31 + (3 ^ 3), 63 - 63 + (3 ^ 35)),
    "local array": (0, 100),
    "structs by value": (0, 18),
    "named barriers": (0, 37),
}


STORE_SECTORS = {  # where more is stored than one block of C
    "atomics of other scopes": 32 + 3 * 32,  # three more by each warp of the four blocks
    "vector atomics": 4 * (32 + 8 * 2),  # all four blocks, and two reductions of eight warps
}


def run(cpu: Runner, name: str) -> Matrix:
    before, _, body = FEATURES[name].rpartition("KERNEL:")
    cpu.load(f"{before}\n{HEAD}{body}{TAIL}")
    return cpu.finish(SHAPE).output


@pytest.mark.parametrize("name", FEATURES)
def test_feature(cpu: Runner, name: str) -> None:
    C = run(cpu, name)
    assert np.isfinite(C).all()
    if name in EXPECTED:
        assert (C[0, 0], C[2, 5]) == EXPECTED[name]
    assert cpu.findings(SHAPE) == ()
    assert cpu.count(SHAPE, 1).global_store_sectors == STORE_SECTORS.get(name, 32)


@pytest.mark.parametrize("name", ["memcpy_async", "cuda::pipeline", "cuda::barrier"])
def test_copies_arrive(cpu: Runner, name: str) -> None:
    C = run(cpu, name)
    A = inputs(SHAPE)[0].reshape(-1)
    assert np.array_equal(C[:16, :16].reshape(-1), A[:256][::-1])
