"""Reports for the tests of the leaderboard. Everything in them is invented."""

import hashlib
import random
from datetime import timedelta
from pathlib import Path
from typing import Any

from harness.board.document import Document
from harness.board.entry import Entry, Version
from harness.compiling.occupancy import occupancy
from harness.judge.stages import score as scoring
from harness.protocol import report as protocol
from harness.protocol.report import Accepted, Badge, CaseResult, Report, Unscored
from problem.cases import CASES, QUICK_CASES, RANKED, Case, Shape
from problem.launcher import LaunchLine

MODEL = Report.model_validate_json(Path(__file__).with_name("report.json").read_bytes())
"""An accepted report of an H100. Other reports differ from it in what a test needs."""

START, COUNTERS, H100 = MODEL.created, MODEL.counters, "NVIDIA H100 80GB HBM3"
SOURCE = """\
// An invented kernel of the leaderboard's tests.
extern "C" __global__ void matrix_multiplication_kernel(const float* A, const float* B, float* C,
                                                        int M, int N, int K) {
    int row = blockIdx.y * 16 + threadIdx.y;
    int col = blockIdx.x * 16 + threadIdx.x;
    if (row >= M || col >= K) return;
    float sum = 0.0f;
    for (int i = 0; i < N; ++i) {
        sum += A[row * N + i] * B[i * K + col];
    }
    C[row * K + col] = sum;
}
"""


def report(
    name: str = "tile",
    author: str | None = "ada",
    score: float | None = 0.9,
    *,
    half_width: float = 0.002,
    day: float = 0,
    gpu: str = H100,
    source: str | None = None,
    cores: Badge = Badge.CUDA_CORES,
    launch: Badge = Badge.DEFAULT_LAUNCH,
    quick: bool = False,
    version: Version | None = None,
    seed: int = 7,
    rounds: int = 30,
    outcome: protocol.Outcome | None = None,
    uuid: str = "GPU-0",
) -> Report:
    """Return a report with this outcome, or an accepted one.

    An accepted report without a score comes from the CPU device.
    """
    version = version or Version.current()
    if source is None:
        label = f"{author} {name} {score} {day} {outcome.verdict if outcome else ''}"
        source = SOURCE + f"static_assert(true, {label!r});\n"
    if launch is Badge.DECLARED_LAUNCH:
        source = f"// solve: tile=128x128\n{source}"
    scored = score is not None and outcome is None
    on_gpu = _with(MODEL.device, name=gpu, uuid=uuid)
    device = (
        on_gpu if scored or outcome else protocol.DeviceInfo(kind="cpu", name="CPU", arch="sm_90")
    )
    measurement = _measurement(score or 1, half_width, rounds, quick) if scored else None
    found = scoring.score(measurement.rounds, device, RANKED.shape) if measurement else None
    cases = tuple(
        CaseResult(case=case, error=0.0 if case.tolerance == "exact" else 2.2e-6, seconds=0.2)
        for case in (QUICK_CASES if quick else (*CASES, RANKED))
    )
    submission = {"name": name, "author": author, "source": source, "sha256": _sha256(source)}
    kernel = {
        "program_sha256": program(source),
        "arch": device.arch,
        "launch": LaunchLine() if launch is Badge.DEFAULT_LAUNCH else LaunchLine(128, 128),
        "occupancy": occupancy(MODEL.kernel.resources, device.arch),
        "badges": (cores, launch),
        "instructions": {"FFMA" if cores is Badge.CUDA_CORES else "HGMMA": 512, "LDS": 64},
    }
    return _with(
        MODEL,
        environment=_with(MODEL.environment, judge=version.judge, cases=version.cases),
        created=START + timedelta(days=day),
        seed=seed,
        quick=quick,
        submission=_with(MODEL.submission, **submission),
        device=device,
        outcome=outcome
        or Accepted(score=found or Unscored(reason="device", message="only a GPU gives a score")),
        kernel=_with(MODEL.kernel, **kernel),
        verification=_with(MODEL.verification, cases=cases),
        measurement=measurement,
    )


def replace_at(data: Any, path: str, value: Any) -> None:
    """Replace one value. The path a__3__b means the b of the fourth item of a; a function gets the
    former value."""
    *steps, last = (int(step) if step.isdecimal() else step for step in path.split("__"))
    for step in steps:
        data = data[step]
    data[last] = value(data[last]) if callable(value) else value


def _with(value: Any, **changes: Any) -> Any:
    return value.model_copy(update=changes)


def program(source: str) -> str:
    """Return the hash of the invented program, which comments of the source do not change."""
    lines = (line.partition("//")[0].rstrip() for line in source.splitlines())
    return _sha256("\n".join(filter(None, lines)))


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def rejected(name: str = "broken", author: str = "bob") -> Report:
    """Return a report of a memory error with a finding on line 9."""
    return report(
        name,
        author,
        outcome=protocol.MemoryFault(
            stage=protocol.Stage.SANITIZE,
            message="reads 4 bytes past the end of B",
            findings=(
                protocol.Finding(
                    tool=protocol.Tool.MEMCHECK,
                    hazard=protocol.Hazard.OUT_OF_BOUNDS,
                    message="reads B[17][0], 4 bytes past the end of B, in line 9",
                    at=protocol.Place(line=9, thread=(0, 1, 0), block=(2, 0, 0)),
                    access="read",
                    size=4,
                    array="B",
                    bytes_outside=4,
                    occurrences=12,
                ),
            ),
        ),
    )


def our_fault(name: str = "tile", author: str = "ada", day: float = 0) -> Report:
    ours = protocol.JudgeError(stage=protocol.Stage.VERIFY, message="the worker vanished")
    return report(name, author, outcome=ours, day=day, source=SOURCE)


def wrong(name: str = "wrong", author: str = "bob") -> Report:
    return report(
        name,
        author,
        outcome=protocol.WrongAnswer(
            stage=protocol.Stage.VERIFY,
            message="C is wrong at 33×16×33",
            counterexample=protocol.Counterexample(
                case=Case(Shape(33, 16, 33)),
                seed=99,
                error=0.3,
                worst_block=(2, 0),
                wrong_blocks=3,
                blocks=9,
                elements=(protocol.Element(row=32, column=0, expected=1.5, found=float("nan")),),
                map=protocol.BlockMap(rows=("...", "...", "###")),
                pattern="only the last row of blocks is wrong",
            ),
        ),
    )


def uncompilable(name: str = "typo", author: str = "eve") -> Report:
    return report(
        name,
        author,
        outcome=protocol.CompileError(
            stage=protocol.Stage.COMPILE,
            message="does not compile",
            diagnostics=(
                protocol.Diagnostic(severity="error", message="expected a ';'", line=6, column=39),
            ),
        ),
    )


def entry(*args: object, **facts: object) -> Entry:
    """Return the verified index row of report(...)."""
    made = report(*args, **facts)  # type: ignore[arg-type]
    return Entry.of(made, Document.of(made).id)._replace(verified=True)


def like(model: Entry, name: str, author: str, score: float, *, day: float, identity: str) -> Entry:
    """Return the index row that another kernel would have, without making its report."""
    return model._replace(
        id=_sha256(identity),
        name=name,
        author=author,
        sha256=_sha256(f"source {identity}"),
        code=_sha256(f"code {identity}"),
        created=(START + timedelta(days=day)).isoformat(timespec="microseconds"),
        score=score,
        low=score - 0.002,
        high=score + 0.002,
        kernel_ms=8.15 / score,
        tflops=50.6 * score,
        peak_share=0.756 * score,
    )


def _measurement(score: float, half_width: float, count: int, quick: bool) -> protocol.Measurement:
    """Return rounds whose median ratio is exactly the score.

    Their interval reaches half_width to either side. Round 5 does not count.
    """
    kept = count - 1
    aside = 2 * kept // 5
    ratios = [score - half_width] * aside + [score] * (kept - 2 * aside)
    ratios += [score + half_width] * aside
    random.Random(count).shuffle(ratios)
    ratios.insert(5, score)
    facts = (
        {
            "baseline_ms": 8 * ratio,  # of a kernel of 8 ms: dividing by it loses nothing
            "baseline_host_ms": 8 * ratio + 0.02,
            "kernel_first": i % 4 in (1, 2),
            "clock_mhz": 1755 if i % 5 else 1740,
            "power_w": 650 + i % 7,
            "throttled": ("software thermal slowdown",) if i == 5 else (),
            "dropped": i == 5,
        }
        for i, ratio in enumerate(ratios)
    )
    made = tuple(_with(MODEL.measurement.rounds[0], **each) for each in facts)
    return _with(MODEL.measurement, rounds=made, audit_error=None if quick else 2.2e-6)
