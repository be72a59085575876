"""One CPU device for all tests of this folder."""

import pytest

from harness.devices.cpu.device import CpuDevice
from tests.ptxcpu.runner import Runner


@pytest.fixture(scope="session")
def cpu() -> Runner:
    """The device, which holds the kernel that was loaded last."""
    return Runner(CpuDevice())
