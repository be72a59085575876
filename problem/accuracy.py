"""The accuracy grade of a kernel on structured inputs: A, B or C.

An accepted kernel (problem.reference) is correct on random inputs. That says nothing about inputs
on which FP32 is accurate and an approximation is not: cancellation, few levels, magnitudes that
differ along N. The literature distinguishes implementations of matrix multiplication by these three
grades (u = 2^-24, the unit roundoff of FP32):

* A, componentwise: |C - R| ≤ 4 √N u (|A| |B|), on every input. Any order of N sums and products
  satisfies |C - R| ≤ N u (|A| |B|) (Higham, "Accuracy and Stability of Numerical Algorithms", 2nd
  edition, section 3.5); with roundings of random sign, √N replaces N (Higham and Mary,
  "A New Approach to Probabilistic Rounding Error Analysis", 2019).
* B, row-wise: |C - R|_ij ≤ 4 √N u ‖a_i‖₂ ‖b_j‖₂, on every input. Splittings that scale each row and
  column by its largest element can reach it, and do not reach A.
* C: neither, but accepted. Strassen's algorithm is stable only in norms of the whole matrices
  (Brent 1970; Miller, "Computational Complexity and Numerical Stability", 1975; Higham, section
  23.2.2).

Demmel, Li, Langou, Pereira, Gates and Rubio González propose such grades for any implementation of
the BLAS ("How to grade the accuracy of an implementation of the BLAS", 2024).

On constants all rounding errors have one sign, and FP32 itself exceeds 4 √N u. So an error of at
most twice the baseline's on the same inputs is enough, too. Grade A also requires a block error of
at most 1e-5, or twice the baseline's.
"""

import numpy as np

from problem.cases import Shape
from problem.grades import Errors, Grade
from problem.inputs import Matrix
from problem.reference import MAX_ERROR, compare, quotient, reference

UNIT_ROUNDOFF = 2.0**-24

FACTOR = 4
"""The factor of √N u in the limits of the accuracy grades."""

TIMES_BASELINE = 2

SMALL_SHAPE = Shape(72, 1024, 40)
"""A size with partial tiles that the CPU device computes in a moment."""

INPUTS = (
    "uniform",
    "normal",
    "positive",
    "constant lines",
    "four levels",
    "A two neighbours by turns; B opposites by turns",
    "A spikes on a background; B positive, without spikes",
    "A spikes on a background; B positive",
    "A positive, inner dimension scaled by 2^-7..2^0; "
    "B constant lines, inverse inner dimension scaled by 2^-7..2^0",
    "uniform, inner dimension scaled by 2^-10..2^10",
    "A uniform, elements scaled by 2^-20..2^0; B uniform",
    "normal, lone lines scaled by 2^7..2^7",
    "uniform, rectangles scaled by 2^-10..2^10",
    "uniform, repeated lines",
    "uniform, repeated parts",
    "uniform, rank one",
)


def errors(A: Matrix, B: Matrix, C: Matrix) -> Errors:
    """Return the worst errors of C, compared with the float64 product."""
    A64, B64 = A.astype(np.float64), B.astype(np.float64)
    difference = np.abs(C - reference(A, B))
    norms = np.linalg.norm(A64, axis=1)[:, None] * np.linalg.norm(B64, axis=0)
    terms = np.abs(A64) @ np.abs(B64)
    found = (quotient(difference, size) for size in (norms, terms))
    worst = (float(np.where(np.isfinite(each), each, np.inf).max()) for each in found)
    return Errors(compare(A, B, C).worst, *worst)


def plain_sums(A: Matrix, B: Matrix) -> Matrix:
    """Return the product as the simplest kernel computes it, adding one FP32 product at a time."""
    C: Matrix = np.zeros((A.shape[0], B.shape[1]), np.float32)
    for n in range(A.shape[1]):
        C += A[:, n, None] * B[None, n]
    return C


def grade_of(inner: int, kernel: Errors, baseline: Errors) -> Grade:
    """Return the grade on one kind of inputs. inner: N."""
    allowed = FACTOR * np.sqrt(inner) * UNIT_ROUNDOFF
    if kernel.by_components <= max(
        allowed, TIMES_BASELINE * baseline.by_components
    ) and kernel.block <= max(MAX_ERROR, TIMES_BASELINE * baseline.block):
        return Grade.A
    return Grade.B if kernel.by_rows <= max(allowed, TIMES_BASELINE * baseline.by_rows) else Grade.C
