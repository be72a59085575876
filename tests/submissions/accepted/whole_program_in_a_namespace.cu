// A typical complete program: headers of CUDA's host libraries, classes that own events and memory,
// and global objects. A namespace contains a kernel template with a generic lambda; main launches it.
// expect: message="" quick=yes slow=yes
#include <cuda.h>
#include <cuda_runtime.h>
#include <thrust/device_vector.h>
#include <functional>
#include <map>
#include <random>
#include <string>

struct GpuTimer {
    cudaEvent_t start, stop;
    GpuTimer() {
        cudaEventCreate(&start);
        cudaEventCreate(&stop);
    }
    ~GpuTimer() {
        cudaEventDestroy(start);
        cudaEventDestroy(stop);
    }
    float elapsed() const {
        float ms;
        cudaEventElapsedTime(&ms, start, stop);
        return ms;
    }
};

using Launcher = std::function<void(const float*, const float*, float*, int, int, int)>;
typedef std::string Name;
struct Candidate {
    Name name;
    Launcher run;
};
std::mt19937 generator(42);
static std::map<std::string, int> tiles = {{"small", 16}, {"large", 32}};
float alpha = 1.0f;

namespace gemm {

template <int N, typename F>
__device__ void repeat(F&& f) {
    for (int i = 0; i < N; i++) f(i);
}

template <typename T, int TILE>
__global__ void matrix_multiplication_kernel(const T* A, const T* B, T* C, int M, int N, int K) {
    int row = blockIdx.y * TILE + threadIdx.y;
    int column = blockIdx.x * TILE + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    repeat<1>([&](auto) { C[(size_t)row * K + column] = sum; });
}

struct Result {
    std::string name;
    double ms;
};

}  // namespace gemm

int main() {
    GpuTimer timer;
    thrust::device_vector<float> a(256), b(256), c(256);
    gemm::matrix_multiplication_kernel<float, 16>
        <<<dim3(1), dim3(16, 16)>>>(a.data().get(), b.data().get(), c.data().get(), 16, 16, 16);
    return timer.elapsed() > 0 ? 0 : 1;
}
