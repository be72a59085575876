"""One CPU device for all tests of this folder."""

from pathlib import Path

import pytest

from harness.devices.cpu.device import CpuDevice
from harness.protocol import files
from tests.ptxcpu.runner import Runner


@pytest.fixture(scope="session")
def cache_directory() -> Path:
    """That of the judge's own CPU devices: the runtime takes five seconds to compile."""
    return files.cache_directory()


@pytest.fixture(scope="session")
def cpu_device(cache_directory: Path) -> CpuDevice:
    return CpuDevice(cache_directory)


@pytest.fixture(scope="session")
def cpu(cpu_device: CpuDevice) -> Runner:
    """The device, which holds the kernel that was loaded last."""
    return Runner(cpu_device)
