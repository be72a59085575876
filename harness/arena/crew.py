"""The workers of one machine: one for each of its GPUs, under one supervisor."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
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
    if device == "cpu" or why_no_cuda() is not None:
        return [
            _worker(f"cpu-{n}", ["--device", "cpu", *arguments], environment)
            for n in range(workers or 1)
        ]
    chosen = gpus()[:workers]
    return [
        _worker(
            f"gpu-{n}",
            ["--device", "cuda", "--gpu", str(n), "--gpus", str(len(chosen)), *arguments],
            environment | {"CUDA_VISIBLE_DEVICES": gpu},
        )
        for n, gpu in enumerate(chosen)
    ]


def _worker(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Part:
    return Part(name, "harness.arena.worker", ["--name", name, *arguments], environment)
