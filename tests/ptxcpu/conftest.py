"""One CPU device for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices.cpu.device import CpuDevice
from tests.ptxcpu.runner import Runner


@pytest.fixture(scope="session")
def cache_directory(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Empty at first, and one for the processes of a run (each has a folder in the run's): the
    device's runtime takes five seconds to compile."""
    if worker_id == "master":
        return tmp_path_factory.mktemp("cache")
    return tmp_path_factory.getbasetemp().parent / "cache"


@pytest.fixture(scope="session")
def cpu_device(cache_directory: Path) -> CpuDevice:
    return CpuDevice(cache_directory)


@pytest.fixture(scope="session")
def cpu(cpu_device: CpuDevice) -> Runner:
    """The device, which holds the kernel that was loaded last."""
    return Runner(cpu_device)
