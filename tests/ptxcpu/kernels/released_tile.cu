// Each warp counts itself once it has used a tile, and the last one refills the tile: no race.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    __shared__ float tile[256];
    __shared__ unsigned through;
    int id = threadIdx.y * 16 + threadIdx.x;
    tile[id] = A[0] + id;
    if (id == 0) through = 0;
    __syncthreads();
    float x = tile[255 - id];
    __syncwarp();
    if (id % 32 == 0) {
        unsigned before;
        asm volatile("atom.acq_rel.cta.shared::cta.add.u32 %0, [%1], 1;"
                     : "=r"(before)
                     : "r"((unsigned)__cvta_generic_to_shared(&through))
                     : "memory");
        if (before == 7)
            for (int i = 0; i < 256; ++i) tile[i] = 0.0f;
    }
    if (x == -12345.0f) C[0] = x;
}
