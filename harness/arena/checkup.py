"""A check-up: what a GPU makes of kernels that are known, before it judges those that are not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from harness.devices.health import Health
from harness.protocol.report import DeviceInfo, Round, Score, Unscored, Value, Verdict

SOLUTIONS = Path(__file__).resolve().parent.parent.parent / "solutions"

CUBLAS = "cuBLAS"
ON_CUDA_CORES = ("02_shared_tile", "17_split_tail")
ON_TENSOR_CORES = {"sm_90a": "36_wgmma_one_accumulator"}
"""The fastest of solutions/ for an architecture."""

OTHER_TENSOR_CORES = "31_mma_bf16x3"


def reference_set(arch: str) -> list[Path]:
    """From kernels that wait for memory to those that draw all the power that there is."""
    names = (*ON_CUDA_CORES, ON_TENSOR_CORES.get(arch, OTHER_TENSOR_CORES))
    return [SOLUTIONS / f"{name}.cu" for name in names]


class Known(Value):
    """What came of one kernel of the set, or of cuBLAS beside itself."""

    name: str
    verdict: Verdict
    message: str = ""
    score: Score | None
    clock_mhz: float | None
    power_w: float | None
    """Medians of the rounds."""

    @classmethod
    def of(
        cls,
        name: str,
        verdict: Verdict,
        score: Score | Unscored | None,
        rounds: Sequence[Round],
        message: str = "",
    ) -> Known:
        kept = [each for each in rounds if not each.dropped]
        return cls(
            name=name,
            verdict=verdict,
            message=score.message if isinstance(score, Unscored) else message,
            score=score if isinstance(score, Score) else None,
            clock_mhz=median(each.clock_mhz for each in kept) if kept else None,
            power_w=median(each.power_w for each in kept) if kept else None,
        )


class CheckUp(Value):
    """All of it."""

    judge: str
    """Which build of it: others' scores are no measure."""
    device: DeviceInfo
    cold: Health
    """Before the first kernel."""
    hot: Health
    """After the last."""
    known: tuple[Known, ...]
