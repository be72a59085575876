"""Texts of kernel files."""

from pathlib import Path

NAME = "matrix_multiplication_kernel"
PARAMETERS = "const float* A, const float* B, float* C, int M, int N, int K"


def kernel(body: str, before: str = "", attributes: str = "") -> str:
    """Return a file with one kernel, whose body begins on the third line if `before` has one."""
    return f"{before}\n__global__ void {attributes} {NAME}({PARAMETERS}) {{\n{body}\n}}\n"


def named_parts(file: Path) -> dict[str, str]:
    """Return the parts of a file, each of which stands behind its name in a line `// == NAME`."""
    parts = file.read_text(encoding="utf-8").split("// == ")[1:]
    return dict(part.split("\n", 1) for part in parts)


BROKEN = f"__global__ void {NAME}({PARAMETERS}) {{ int x = ; }}\n"
"""A kernel that does not compile."""

KERNEL = f"""__global__ void {NAME}({PARAMETERS}) {{
    int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || column >= K) return;
    float sum = 0;
    for (int n = 0; n < N; n++) sum += A[(size_t)row * N + n] * B[(size_t)n * K + column];
    C[(size_t)row * K + column] = sum;
}}
"""
