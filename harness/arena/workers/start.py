"""The workers of one machine: one for each of its GPUs, under one supervisor."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Literal

from harness.arena.processes import ADDRESS_VARIABLE, SUPERVISOR_VARIABLE
from harness.arena.supervisor import Part
from harness.arena.workers.api import KEY_VARIABLE
from harness.devices.available import gpus, why_no_cuda


def workers(
    address: str, key: str, device: Literal["auto", "cpu"], count: int | None, quick: bool
) -> list[Part]:
    """Return the processes that grade for the arena at this address.

    device: "auto" is every GPU, or the CPU device without one. count: by default one for
    each GPU, or one.
    """
    environment = {
        ADDRESS_VARIABLE: address,
        KEY_VARIABLE: key,
        SUPERVISOR_VARIABLE: str(uuid.uuid4()),
    }
    more = ["--quick"] if quick else []
    if device == "cpu" or why_no_cuda() is not None:
        return [
            _worker(f"cpu-{n}", ["--device", "cpu", *more], environment) for n in range(count or 1)
        ]
    chosen = gpus()[:count]
    return [
        _worker(
            f"gpu-{n}",
            ["--device", "cuda", "--gpu", str(n), "--gpus", str(len(chosen)), *more],
            environment | {"CUDA_VISIBLE_DEVICES": gpu},
        )
        for n, gpu in enumerate(chosen)
    ]


def _worker(name: str, arguments: Sequence[str], environment: Mapping[str, str]) -> Part:
    return Part(name, "harness.arena.workers.process", ["--name", name, *arguments], environment)
