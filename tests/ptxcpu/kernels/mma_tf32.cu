// Four of the eight warps compute 16x8 pieces with mma.sync.m16n8k8 in TF32.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int id = threadIdx.y * 16 + threadIdx.x, warp = id / 32, lane = id % 32, g = lane / 4, q = lane % 4;
    int row0 = blockIdx.y * 16, column0 = blockIdx.x * 16 + 8 * warp;
    if (warp > 1) return;
    float d[4] = {0, 0, 0, 0};
    auto a_at = [&](int r, int k) { return row0 + r < M && k < N ? A[(row0 + r) * N + k] : 0.0f; };
    auto b_at = [&](int k, int c) { return k < N && column0 + c < K ? B[k * K + column0 + c] : 0.0f; };
    auto tf32 = [](float x) { unsigned y; asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x)); return y; };
    for (int k = 0; k < N; k += 8) {
        unsigned a[4] = {tf32(a_at(g, k + q)), tf32(a_at(g + 8, k + q)), tf32(a_at(g, k + q + 4)), tf32(a_at(g + 8, k + q + 4))};
        unsigned b[2] = {tf32(b_at(k + q, g)), tf32(b_at(k + q + 4, g))};
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    for (int i = 0; i < 4; ++i) {
        int r = row0 + g + i / 2 * 8, c = column0 + 2 * q + i % 2;
        if (r < M && c < K) C[r * K + c] = d[i];
    }
}
