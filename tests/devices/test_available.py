"""Which GPUs there are, as the driver tells it; the driver is a fake."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from harness.devices.available import arch_of


class Driver(SimpleNamespace):
    """The part of pynvml that is asked; a GPU's handle is its place."""

    class NVMLError(Exception):
        pass

    def __init__(self, **capabilities: tuple[int, int]) -> None:
        super().__init__(started=0)
        self.capabilities = capabilities

    def nvmlInit(self) -> None:
        self.started += 1

    def nvmlShutdown(self) -> None:
        self.started -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.capabilities)

    def nvmlDeviceGetHandleByIndex(self, number: int) -> Any:
        return [*self.capabilities.values()][number]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Any:
        if uuid not in self.capabilities:
            raise self.NVMLError("no such GPU")
        return self.capabilities[uuid]

    def nvmlDeviceGetCudaComputeCapability(self, handle: Any) -> list[int]:
        return [*handle]


@pytest.mark.parametrize(
    ("capabilities", "gpu", "arch"),
    [
        ({"a": (9, 0)}, None, "sm_90a"),
        ({"a": (8, 6), "b": (8, 6)}, None, "sm_86"),
        ({"a": (9, 0), "b": (8, 0)}, None, None),
        ({"a": (9, 0), "b": (8, 0)}, "b", "sm_80"),
        ({"a": (10, 0)}, "a", "sm_100a"),
        ({"a": (9, 0)}, "another", None),
        ({}, None, None),
    ],
)
def test_the_driver_determines_the_target(
    capabilities: dict[str, tuple[int, int]],
    gpu: str | None,
    arch: str | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    driver = Driver(**capabilities)
    monkeypatch.setitem(sys.modules, "pynvml", driver)
    assert arch_of(gpu) == arch and driver.started == 0
