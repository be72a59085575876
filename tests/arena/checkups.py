"""Makes check-ups for the tests. Everything in them is invented."""

from __future__ import annotations

from harness.arena.checkup import CUBLAS, CheckUp, Known
from harness.devices.health import Health
from harness.protocol.report import DeviceInfo, DeviceKind, Score, Verdict

MODEL = "NVIDIA H200"
WELL = Health(
    temperature_c=40,
    power_limit_w=700,
    default_power_limit_w=700,
    uncorrected_errors=0,
    remapping_failed=False,
)


def score(ratio: float, baseline_ms: float = 8.05) -> Score:
    return Score(
        ratio=ratio,
        low=ratio * 0.999,
        high=ratio * 1.001,
        kernel_ms=baseline_ms / ratio,
        baseline_ms=baseline_ms,
        tflops=51.2 * ratio,
        peak_share=0.7,
    )


def known(name: str, ratio: float, baseline_ms: float = 8.05) -> Known:
    return Known(
        name=name,
        verdict=Verdict.ACCEPTED,
        score=score(ratio, baseline_ms),
        clock_mhz=1965,
        power_w=600,
    )


def checkup(
    uuid: str = "GPU-1",
    *,
    itself: float = 1.0,
    tensor: float = 4.8,
    baseline_ms: float = 8.05,
    health: Health = WELL,
    driver: str = "13.0",
    judge: str = "judge 1",
) -> CheckUp:
    return CheckUp(
        judge=judge,
        device=DeviceInfo(
            kind=DeviceKind.CUDA,
            name=MODEL,
            arch="sm_90a",
            uuid=uuid,
            driver=driver,
            cublas="13.1.0",
        ),
        cold=health,
        hot=health.model_copy(update={"temperature_c": 65}),
        known=(
            known(CUBLAS, itself, baseline_ms),
            known("02_shared_tile", 0.16, baseline_ms),
            known("36_wgmma_one_accumulator", tensor, baseline_ms),
        ),
    )
