"""One CPU device for all tests of this folder, and how many examples hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cpu_bench import Bench
from hypothesis import HealthCheck, settings

from harness.devices.cpu.device import CpuDevice

# The fixture is a device: loading another kernel replaces the last one.
CHECKS = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large]
settings.register_profile(
    "small", max_examples=25, deadline=None, derandomize=True, suppress_health_check=CHECKS
)
settings.register_profile("nightly", max_examples=2000, deadline=None, suppress_health_check=CHECKS)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "small"))


@pytest.fixture(scope="session")
def cache_directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="session")
def cpu_device(cache_directory: Path) -> CpuDevice:
    return CpuDevice(cache_directory)


@pytest.fixture
def cpu(cpu_device: CpuDevice) -> Bench:
    return Bench(cpu_device)
