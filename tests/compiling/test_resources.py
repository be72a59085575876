"""The resources of a kernel are read from a log of ptxas about several kernels."""

from __future__ import annotations

import pytest

from harness.compiling.ptxas import resources
from harness.protocol.report import Resources
from problem.launcher import LaunchLine

LOG = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'other' for 'sm_90a'
ptxas info    : Function properties for other
    800 bytes stack frame, 96 bytes spill stores, 100 bytes spill loads
ptxas info    : Used 255 registers, 800 bytes cumulative stack size, 49152 bytes smem
ptxas info    : Compiling entry function 'mine' for 'sm_90a'
ptxas info    : Function properties for mine
    16 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 40 registers, 48 bytes cumulative stack size, 1024 bytes smem
ptxas info    : Function properties for helper
    32 bytes stack frame, 1 bytes spill stores, 2 bytes spill loads
ptxas info    : Compiling entry function 'last' for 'sm_90a'
ptxas info    : Function properties for last
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, 564 bytes cmem[0]
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("other", (255, 800, 96, 100, 49152)),
        ("mine", (40, 48, 5, 10, 1024)),
        ("last", (10, 0, 0, 0, 0)),
    ],
)
def test_each_kernel_has_its_own_resources(name: str, expected: tuple[int, ...]) -> None:
    registers, stack, stores, loads, shared = expected
    assert resources(LOG, name, LaunchLine(16, 16, 4096)) == Resources(
        registers=registers,
        stack_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        static_shared_bytes=shared,
        dynamic_shared_bytes=4096,
    )


def test_a_log_that_does_not_tell_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="ptxas does not say what absent takes"):
        resources(LOG, "absent", LaunchLine())
