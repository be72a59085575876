// Four warps load tiles, and the other four multiply them by wgmma, with one group in flight. Mbarriers
// say which tiles are full or empty. The threads that load execute the proxy fence.
// solve: tile=64x16
// expect: message="" quick=yes

struct Stage {
    float high[80 * 8], low[80 * 8];  // 64 rows of A, then 16 columns of B
};

__device__ unsigned here(const void* x) { return (unsigned)__cvta_generic_to_shared(x); }

__device__ void init(unsigned long long& barrier) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 128;" ::"r"(here(&barrier)) : "memory");
}

__device__ void arrive(unsigned long long& barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(here(&barrier)) : "memory");
}

__device__ void await(unsigned long long& barrier, int parity) {
    asm volatile("{ .reg .pred done;\n"
                 "AGAIN: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra AGAIN; }" ::"r"(here(&barrier)),
                 "r"(parity)
                 : "memory");
}

__device__ int place(int line, int n) { return line / 8 * 64 + n / 4 * 32 + line % 8 * 4 + n % 4; }

__device__ unsigned long long descriptor(const float* tile) {
    return here(tile) >> 4 | 128ull >> 4 << 16 | 256ull >> 4 << 32;
}

// d = a·b, or d += a·b
__device__ void multiply(float (&d)[8], const float* a, const float* b, int adds) {
    asm volatile("{ .reg .pred adds; setp.ne.b32 adds, %10, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7}, %8, %9, adds, 1, 1; }"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]),
                   "+f"(d[6]), "+f"(d[7])
                 : "l"(descriptor(a)), "l"(descriptor(b)), "r"(adds));
}

// A group of products of one stage.
__device__ void multiply(float (&d)[8], const Stage& s) {
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
    multiply(d, s.low, s.high + 64 * 8, 0);
    multiply(d, s.high, s.low + 64 * 8, 1);
    multiply(d, s.high, s.high + 64 * 8, 1);
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most this many groups are in flight, and adds the sums of an older one.
template <int LEFT>
__device__ void collect(float (&sum)[8], float (&d)[8]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(LEFT) : "memory");
    for (int i = 0; i < 8; i++) {
        asm volatile("" : "+f"(d[i])::"memory");
        sum[i] += d[i];
    }
}

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ __align__(128) Stage stages[2];
    __shared__ unsigned long long full[2], empty[2];
    int id = threadIdx.y * 16 + threadIdx.x, lane = id % 32, warp = id / 32;
    int row0 = blockIdx.y * 64, column0 = blockIdx.x * 16, steps = (N + 15) / 16;
    if (id == 0)
        for (int s = 0; s < 2; s++) init(full[s]), init(empty[s]);
    __syncthreads();
    if (warp >= 4) {
        for (int step = 0; step < 2 * steps; step++) {
            Stage& stage = stages[step % 2];
            if (step >= 2) await(empty[step % 2], step / 2 - 1 & 1);
            for (int i = id - 128; i < 80 * 8; i += 128) {
                int line = i / 8, n = step * 8 + i % 8, row = row0 + line,
                    column = column0 + line - 64;
                float x = 0.0f;
                if (line < 64 && row < M && n < N) x = A[(size_t)row * N + n];
                if (line >= 64 && column < K && n < N) x = B[(size_t)n * K + column];
                float part = __uint_as_float(__float_as_uint(x) & 0xffffe000);
                stage.high[place(line, i % 8)] = part;
                stage.low[place(line, i % 8)] = x - part;
            }
            asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
            arrive(full[step % 2]);
        }
        return;
    }
    float sum[8] = {}, even[8] = {}, odd[8] = {};
    for (int step = 0; step < steps; step++) {
        await(full[0], step & 1);
        multiply(even, stages[0]);
        if (step > 0) {
            collect<1>(sum, odd);
            arrive(empty[1]);
        }
        await(full[1], step & 1);
        multiply(odd, stages[1]);
        collect<1>(sum, even);
        arrive(empty[0]);
    }
    collect<0>(sum, odd);
    for (int i = 0; i < 8; i++) {
        int row = row0 + 16 * warp + lane / 4 + i / 2 % 2 * 8;
        int column = column0 + i / 4 * 8 + lane % 4 * 2 + i % 2;
        if (row < M && column < K) C[(size_t)row * K + column] = sum[i];
    }
}
