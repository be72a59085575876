// #embed converts the bytes of a file to numbers, so it could read any file of the machine.
// expect: stage=read message="#embed is not allowed"

__device__ const unsigned char secret[] = {
#embed "/etc/passwd"
};

extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    C[0] = secret[0];
}
