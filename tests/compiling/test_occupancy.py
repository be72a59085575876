"""The occupancy agrees with NVIDIA's calculator."""

import pytest

from harness.compiling.occupancy import multiprocessor, occupancy
from harness.protocol.report import Resources
from tests.judge.stages.fakes import kernel


def resources(registers: int, shared: int = 0) -> Resources:
    sizes = {"registers": registers, "static_shared_bytes": shared}
    return kernel().facts.resources.model_copy(update=sizes)


@pytest.mark.parametrize(
    ("registers", "shared", "blocks", "limit"),
    [
        (32, 2048, 8, "registers"),
        (33, 0, 6, "registers"),
        (128, 0, 2, "registers"),
        (129, 0, 1, "registers"),
        (255, 0, 1, "registers"),
        (16, 48 * 1024, 4, "shared memory"),
        (16, 115_712, 2, "shared memory"),
        (16, 115_713, 1, "shared memory"),
        (16, 0, 8, "threads"),
        (0, 0, 8, "registers"),
    ],
)
def test_blocks_of_256_threads_on_an_h100(
    registers: int, shared: int, blocks: int, limit: str
) -> None:
    found = occupancy(resources(registers, shared), "sm_90a")
    assert (found.blocks, found.limited_by) == (blocks, limit)
    assert found.warps == 8 * blocks


@pytest.mark.parametrize(
    ("arch", "blocks", "kib"),
    [
        *(("sm_70", 8, 96), ("sm_75", 4, 64), ("sm_80", 8, 163), ("sm_86", 6, 99)),
        *(("sm_89", 6, 99), ("sm_90a", 8, 227), ("sm_100a", 8, 227), ("sm_120a", 6, 99)),
    ],
)
def test_limits_are_those_of_the_programming_guide(arch: str, blocks: int, kib: int) -> None:
    """The threads of a multiprocessor, and the shared memory that a block may have."""
    found = occupancy(resources(16), arch)
    assert (found.blocks, found.limited_by) == (blocks, "threads")
    assert multiprocessor(arch).shared_per_block == kib << 10
    assert occupancy(resources(16, kib << 10), arch).blocks == 1
    assert occupancy(resources(16, (kib << 10) + 1), arch).blocks == 0


@pytest.mark.parametrize("arch", ["sm_42", "sm_90X", "compute_90"])
def test_an_unknown_architecture_is_named(arch: str) -> None:
    with pytest.raises(ValueError, match=f"{arch}; known: sm_70, sm_75, sm_80"):
        multiprocessor(arch)
