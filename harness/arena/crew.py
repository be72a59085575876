"""The workers of one machine: one for each of its GPUs, under one supervisor."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Literal

from harness.arena.processes import CREW_VARIABLE, DATABASE_VARIABLE
from harness.arena.supervisor import Part
from harness.devices.available import gpus, why_no_cuda


def crew(
    address: str, device: Literal["auto", "cpu"], workers: int | None, arguments: Sequence[str] = ()
) -> list[Part]:
    """address: of the database, as a worker. device: auto is the CPU device where there is no GPU.
    workers: how many; by default one for each GPU, or one."""
    environment = {DATABASE_VARIABLE: address, CREW_VARIABLE: str(uuid.uuid4())}
    on_gpus = device != "cpu" and why_no_cuda() is None
    places: list[tuple[str, dict[str, str]]] = (
        [(f"gpu-{n}", {"CUDA_VISIBLE_DEVICES": gpu}) for n, gpu in enumerate(gpus()[:workers])]
        if on_gpus
        else [(f"cpu-{n}", {}) for n in range(workers or 1)]
    )
    return [
        Part(
            name,
            "harness.arena.worker",
            ["--name", name, "--device", "cuda" if on_gpus else "cpu", *arguments],
            environment | visible,
        )
        for name, visible in places
    ]
