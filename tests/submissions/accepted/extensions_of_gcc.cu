// Words of GCC's and of C++20 that nvcc accepts, and bytes that are added in one register.
// expect: message="" quick=yes

#define MIN(a, b)               \
    ({                          \
        __typeof__(a) _a = (a); \
        __typeof__(b) _b = (b); \
        _a < _b ? _a : _b;      \
    })

struct __align__(8) Place {
    int row, column;
};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    Place place{.row = (int)(blockIdx.y * 16 + threadIdx.y),
                .column = (int)(blockIdx.x * 16 + threadIdx.x)};
    if (place.row >= M || place.column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n += 8) {
        // The eight factors are added from the left, so that each sum is that of the definition.
        for (int i = n; i < MIN(n + 8, N); i++)
            sum += A[(size_t)place.row * N + i] * B[(size_t)i * K + place.column];
    }
    unsigned distance = __vsadu4(0x01020304, 0x04030201) + __vabsdiffs4(0x7f, 0x80) % 256 - 8;
    C[(size_t)place.row * K + place.column] = sum + (distance == 255 ? 0.0f : 1.0f);
}
