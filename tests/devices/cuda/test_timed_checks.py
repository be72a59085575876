"""The checks of a timed launch: what each of them sees that the others do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from harness.devices.drawing import draw_on_host
from problem.reference import MAX_ERROR, compare

M, N, K = 2048, 3072, 1024


@pytest.fixture(scope="module")
def product() -> Any:
    """A, B and their product on the GPU, and the modules to work on them."""
    from harness.devices.cuda import judge_kernels, memory
    from harness.devices.cuda.baseline import Sgemm

    A, B, C = memory.matrix(M, N), memory.matrix(N, K), memory.matrix(M, K)
    judge_kernels.draw(A, judge_kernels.Draw(1))
    judge_kernels.draw(B, judge_kernels.Draw(2))
    Sgemm()(A, B, C)
    return A, B, C


@pytest.mark.gpu
def test_the_host_draws_what_the_gpu_draws(product: Any) -> None:
    A, B, _ = product
    assert np.array_equal(A.get(), draw_on_host(M, N, 1))
    assert np.array_equal(B.get(), draw_on_host(N, K, 2))


@pytest.mark.gpu
def test_a_changed_input_is_seen() -> None:
    from harness.devices.cuda import judge_kernels, memory

    A = memory.matrix(100, 77)
    for scaling in judge_kernels.Scaling:
        how = judge_kernels.Draw(5, scaling)
        judge_kernels.draw(A, how)
        assert not judge_kernels.changed(A, how)
        A[99, 76] += 1
        assert judge_kernels.changed(A, how)


@pytest.mark.gpu
def test_scaled_draws_have_groups_of_eight() -> None:
    from harness.devices.cuda import judge_kernels, memory

    A = memory.matrix(64, 4096)
    judge_kernels.draw(A, judge_kernels.Draw(5, judge_kernels.Scaling.ROW_GROUPS))
    sizes = np.log2(np.abs(A.get()).max(axis=1)).round().reshape(8, 8)
    assert (sizes == sizes[:, :1]).all() and len(set(sizes[:, 0])) > 1
    assert np.abs(sizes).max() <= 10


@pytest.mark.gpu
def test_block_errors_are_those_of_the_rule() -> None:
    from harness.devices.cuda import judge_kernels, memory
    from harness.devices.cuda.baseline import Sgemm

    A, B, C = memory.matrix(37, 200), memory.matrix(200, 21), memory.matrix(37, 21)
    judge_kernels.draw(A, judge_kernels.Draw(1))
    judge_kernels.draw(B, judge_kernels.Draw(2))
    Sgemm()(A, B, C)
    C[20, 20] += 1e-3  # 6 blocks: every one of them is looked at, many times
    expected = compare(A.get(), B.get(), C.get()).worst
    found = judge_kernels.worst_block(A, B, C, 3) * MAX_ERROR
    assert found == pytest.approx(expected, rel=1e-9)


@pytest.mark.gpu
def test_an_error_in_every_block_hides_from_no_sum_over_all_rows(product: Any) -> None:
    from harness.devices.cuda import judge_kernels

    A, B, C = product
    right = C.get()
    size = np.sqrt(N) / 3
    signs = np.random.default_rng(0).choice((-1, 1), right.shape)
    C.set((right + 1.5 * MAX_ERROR * size * signs).astype(np.float32))
    assert judge_kernels.freivalds(A, B, C, 3) > 1.2
    assert judge_kernels.worst_error(A, B, C, 3) > 1.2
    C.set(right)
    assert judge_kernels.worst_error(A, B, C, 3) < 0.6


@pytest.mark.gpu
def test_errors_of_one_sign_are_held_to_what_the_rule_allows_and_no_less() -> None:
    from harness.devices.cuda import judge_kernels, memory
    from harness.devices.cuda.baseline import Sgemm

    A, B, C = memory.matrix(M, N), memory.matrix(N, K), memory.matrix(M, K)
    for matrix, seed in ((A, 1), (B, 2)):
        judge_kernels.draw(matrix, judge_kernels.Draw(seed, judge_kernels.Scaling.POSITIVE))
        assert float(matrix.min()) >= 0
    Sgemm()(A, B, C)
    right = C.get()
    assert judge_kernels.worst_block(A, B, C, 3) < 0.5
    C.set(right * np.float32(1 - 0.5 * MAX_ERROR))
    assert judge_kernels.worst_block(A, B, C, 3) < 1 < judge_kernels.freivalds(A, B, C, 3)
    C.set(right * np.float32(1 - 1.5 * MAX_ERROR))
    assert judge_kernels.worst_block(A, B, C, 3) > 1


@pytest.mark.gpu
def test_thinly_spread_coarse_blocks_are_found_by_looking_at_blocks(product: Any) -> None:
    from harness.devices.cuda import judge_kernels

    A, B, C = product
    right = C.get()
    wrong = right.copy()
    for row in range(0, M, 16):
        column = row % K
        wrong[row : row + 16, column : column + 16] *= np.float32(1 + 1e-4)
    C.set(wrong)
    assert judge_kernels.freivalds(A, B, C, 3) < 1.5
    assert judge_kernels.worst_error(A, B, C, 3) > 5
    C.set(right)


def test_the_hosts_draw_is_splitmix64() -> None:
    def drawn(i: int, seed: int) -> float:
        z = (seed + (i + 1) * 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return ((z ^ z >> 31) >> 40) / 2**23 - 1

    found = draw_on_host(3, 5, 2**63 + 7).reshape(-1)
    assert found.tolist() == [drawn(i, 2**63 + 7) for i in range(15)]
