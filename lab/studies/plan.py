"""The plan of a study: which kernels are measured, in which blocks, at which sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness.protocol.compiler import Kernel
from lab.studies.job import StudyJob, Timed
from problem.cases import RANKED, Shape

_KERNELS = Path(__file__).parent / "kernels"

WIDTHS = tuple(2**power for power in range(3, 13))
SIDES = (8, 16, 32)
OUTPUTS = (1, 2, 4, 8, 16, 32)
LADDER_WIDTHS = (256, 512, 1024, 2048, 4096, 8192)
STEPS = ("02_shared_tile", "04_padded_tile", "05_transposed_b")
SUMS = (16, 64, 256, 1024, 4096, 16384)
ARITHMETICS = (
    "01_naive",
    "17_split_tail",
    "19_strassen_two_phases",
    "30_mma_tf32x3",
    "31_mma_bf16x3",
    "33_wgmma_two_phase",
    "34_wgmma_fp16_scaled",
)
CLUSTERS = (
    ("cluster of 1", 1, 0),
    ("cluster of 2, distributed", 2, 0),
    ("cluster of 2, multicast", 2, 1),
    ("cluster of 4, distributed", 4, 0),
    ("cluster of 4, multicast", 4, 1),
)
"""Blocks that share a tile of B, and whether each copy of it is sent to all of them."""

COPIED = tuple(4096 * 4**power for power in range(9))
"""From 4 KiB to 256 MiB."""


def sources(solutions: Path) -> dict[str, str]:
    """Every kernel of the study, by its name."""
    found = {path.stem: path.read_text(encoding="utf-8") for path in sorted(solutions.glob("*.cu"))}
    for name in ("naive", "shared"):
        text = (_KERNELS / f"{name}.cu").read_text(encoding="utf-8")
        for side in SIDES:
            found[f"{name} {side}x{side}"] = _with(text, "SIDE", side)
    outputs = found["06_outputs_per_thread"]
    for count in OUTPUTS:
        launch = f"// solve: tile={16 * count}x16"
        text = re.sub(r"// solve: tile=\d+x\d+", launch, _with(outputs, "OUTPUTS", count), count=1)
        found[f"outputs {count}"] = text
    text = (_KERNELS / "cluster.cu").read_text(encoding="utf-8")
    for name, blocks, multicast in CLUSTERS:
        found[name] = _with(_with(text, "CLUSTER", blocks), "MULTICAST", multicast)
    return found


def _with(text: str, constant: str, value: int) -> str:
    changed, count = re.subn(rf"\b{constant} = \d+;", f"{constant} = {value};", text)
    assert count == 1, f"{constant} stands {count} times"
    return changed


def plan(kernels: dict[str, Kernel]) -> StudyJob:
    """All series, for the kernels of `sources`."""
    return StudyJob(
        kernels=kernels,
        timed=(*_by_width(), *_by_outputs(kernels), *_by_cluster(kernels), *_ladder(kernels)),
        errors_at=SUMS,
        errors_of=(*ARITHMETICS, *(name for name, _, _ in CLUSTERS)),
        copied=COPIED,
    )


def _by_width() -> Iterator[Timed]:
    for width in WIDTHS:
        for side in (side for side in SIDES if side <= width):
            for name in ("naive", "shared"):
                yield Timed(
                    series="width",
                    kernel=f"{name} {side}x{side}",
                    block=(side, side, 1),
                    tile=(side, side),
                    shape=Shape(width, width, width),
                )


def _by_outputs(kernels: dict[str, Kernel]) -> Iterator[Timed]:
    for count in OUTPUTS:
        yield _own(kernels, "outputs", f"outputs {count}", RANKED.shape)
    for name in STEPS:
        yield _own(kernels, "steps", name, RANKED.shape)


def _by_cluster(kernels: dict[str, Kernel]) -> Iterator[Timed]:
    for name, _, _ in CLUSTERS:
        yield _own(kernels, "cluster", name, RANKED.shape)


def _ladder(kernels: dict[str, Kernel]) -> Iterator[Timed]:
    ladder = [name for name in kernels if re.match(r"\d\d_", name)]
    for width in LADDER_WIDTHS:
        shape = Shape(width, width, width)
        yield Timed(series="ladder", kernel=None, tile=(1, 1), shape=shape)
        for name in ladder:
            yield _own(kernels, "ladder", name, shape)


def _own(kernels: dict[str, Kernel], series: str, name: str, shape: Shape) -> Timed:
    """In the launch that the kernel's own line asks for."""
    line = kernels[name].launch
    tile = (line.tile_rows, line.tile_columns)
    return Timed(series=series, kernel=name, tile=tile, shape=shape)
