// Honest: a program for nvcc, whose host code has a library, variables, and a class with methods.
// expect: message="" quick=yes

#include <Eigen/Dense>
#include <cstdio>
#include <vector>

using namespace Eigen;
using Eigen::MatrixXf;
namespace linear = Eigen::Architecture;

static const char* title = "one thread an element";
int launches = 0;
float *d_A, *d_B, *d_C;
std::vector<float> host;

struct Size {
    int rows, columns;
    int elements() const { return rows * columns; }
};

static std::vector<float> zeros(Size size) { return std::vector<float>(size.elements()); }

void announce() { printf("%s, launch %d\n", title, ++launches); }

REGISTER_BENCHMARK("one thread an element", announce)

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0.0f;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}

int main() {
    host = zeros(Size{16, 16});
    announce();
    matrix_multiplication_kernel<<<dim3(1, 1), dim3(16, 16)>>>(d_A, d_B, d_C, 16, 16, 16);
    return 0;
}
