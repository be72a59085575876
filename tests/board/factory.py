"""Reports for the tests of the leaderboard. Everything in them is invented."""

from __future__ import annotations

import hashlib
import random
from datetime import UTC, datetime, timedelta

from harness.board.document import Document
from harness.board.entry import Entry, Version
from harness.compiling.occupancy import occupancy
from harness.judge.stages import score as scoring
from harness.protocol.report import (
    Accepted,
    Badge,
    BlockMap,
    CaseResult,
    CompileError,
    Counterexample,
    Counters,
    DeviceInfo,
    DeviceKind,
    Diagnostic,
    DisassembledKernel,
    Element,
    Environment,
    Finding,
    FirstLaunch,
    Hazard,
    HostMemory,
    HostMemoryKind,
    JudgeError,
    LineCounters,
    Measurement,
    MemoryFault,
    Outcome,
    Place,
    Report,
    Resources,
    Round,
    Sanitizing,
    Stage,
    Steadiness,
    Submission,
    Tool,
    ToolRun,
    Unscored,
    Verification,
    WrongAnswer,
)
from problem.cases import CASES, QUICK_CASES, RANKED, Case, Shape
from problem.launcher import LaunchLine

H100 = "NVIDIA H100 80GB HBM3"
START = datetime(2026, 1, 1, 12, tzinfo=UTC)
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
    outcome: Outcome | None = None,
    uuid: str = "GPU-0",
) -> Report:
    """Return a report with this outcome, or an accepted one.

    An accepted report without a score comes from the CPU device.
    """
    version = version or Version.current()
    default = launch is Badge.DEFAULT_LAUNCH
    if source is None:
        label = f"{author} {name} {score} {day} {outcome.verdict if outcome else ''}"
        source = SOURCE + f"static_assert(true, {label!r});\n"
    if launch is Badge.DECLARED_LAUNCH:
        source = f"// solve: tile=128x128\n{source}"
    scored = score is not None and outcome is None
    device = _device(gpu, uuid) if scored or outcome else _CPU
    measurement = _measurement(score or 1, half_width, rounds, quick) if scored else None
    found = scoring.score(measurement.rounds, device, RANKED.shape) if measurement else None
    cases = QUICK_CASES if quick else (*CASES, RANKED)
    resources = Resources(
        registers=128,
        stack_bytes=0,
        spill_store_bytes=0,
        spill_load_bytes=0,
        static_shared_bytes=16384,
        dynamic_shared_bytes=0,
    )
    return Report(
        environment=Environment(
            judge=version.judge, cases=version.cases, python="3.11.2", system="Linux"
        ),
        created=START + timedelta(days=day),
        seed=seed,
        quick=quick,
        submission=Submission(
            name=name,
            author=author,
            sha256=_sha256(source),
            source=source,
        ),
        device=device,
        outcome=outcome
        or Accepted(score=found or Unscored(reason="device", message="only a GPU gives a score")),
        diagnostics=(
            Diagnostic(severity="warning", message='variable "unused" is not used', line=7),
        ),
        kernel=DisassembledKernel(
            program_sha256=program(source),
            arch=device.arch,
            launch=LaunchLine() if default else LaunchLine(128, 128),
            resources=resources,
            occupancy=occupancy(resources, device.arch),
            badges=(cores, launch),
            instructions={"FFMA" if cores is Badge.CUDA_CORES else "HGMMA": 512, "LDS": 64},
        ),
        verification=Verification(
            cases=tuple(
                CaseResult(case=case, error=0.0 if case.exact else 2.2e-6, seconds=0.2)
                for case in cases
            ),
            worst_error=2.2e-6,
        ),
        sanitizing=(
            Sanitizing(
                program="compute-sanitizer 2025.3",
                shapes=(Shape(33, 17, 47),),
                tools=tuple(ToolRun(tool=tool, status="clean", seconds=1.5) for tool in Tool),
            ),
        ),
        measurement=measurement,
        counters=COUNTERS,
    )


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
        outcome=MemoryFault(
            stage=Stage.SANITIZE,
            message="reads 4 bytes past the end of B",
            findings=(
                Finding(
                    tool=Tool.MEMCHECK,
                    hazard=Hazard.OUT_OF_BOUNDS,
                    message="reads B[17][0], 4 bytes past the end of B, in line 9",
                    at=Place(line=9, thread=(0, 1, 0), block=(2, 0, 0)),
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
    ours = JudgeError(stage=Stage.VERIFY, message="the worker vanished")
    return report(name, author, outcome=ours, day=day, source=SOURCE)


def wrong(name: str = "wrong", author: str = "bob") -> Report:
    return report(
        name,
        author,
        outcome=WrongAnswer(
            stage=Stage.VERIFY,
            message="C is wrong at 33×16×33",
            counterexample=Counterexample(
                case=Case(Shape(33, 16, 33)),
                seed=99,
                error=0.3,
                worst_block=(2, 0),
                wrong_blocks=3,
                blocks=9,
                elements=(Element(row=32, column=0, expected=1.5, found=float("nan")),),
                map=BlockMap(rows=("...", "...", "###")),
                pattern="only the last row of blocks is wrong",
            ),
        ),
    )


def uncompilable(name: str = "typo", author: str = "eve") -> Report:
    return report(
        name,
        author,
        outcome=CompileError(
            stage=Stage.COMPILE,
            message="does not compile",
            diagnostics=(
                Diagnostic(severity="error", message="expected a ';'", line=6, column=39),
            ),
        ),
    )


def entry(*args: object, **facts: object) -> Entry:
    """Return the verified index row of report(...)."""
    made = report(*args, **facts)  # type: ignore[arg-type]
    return Entry.of(made, Document.of(made).id)._replace(verified=True)


def crowd(count: int) -> list[Entry]:
    """Return scored entries of so many kernels, the best first, without their reports."""
    model = entry()
    names = ((n, f"kernel {n:05d}", f"author {n % 97:02d}") for n in range(count))
    return [
        like(model, name, author, 1 - n / (2 * count), day=n / 144, identity=name)
        for n, name, author in names
    ]


def like(
    model: Entry,
    name: str,
    author: str,
    score: float,
    *,
    day: float,
    identity: str,
) -> Entry:
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


_CPU = DeviceInfo(kind=DeviceKind.CPU, name="CPU", arch="sm_90")

COUNTERS = Counters(
    shape=Shape(128, 64, 128),
    counted_blocks=4,
    blocks=64,
    global_load_requests=4096,
    global_load_sectors=9216,
    global_store_requests=32,
    global_store_sectors=128,
    shared_load_requests=0,
    shared_load_wavefronts=0,
    shared_store_requests=0,
    shared_store_wavefronts=0,
    bank_conflicts=0,
    flop=131_072,
    flop_per_global_byte=0.44,
    divergent_branches=0,
    instructions={"ld.global.f32": 131_072, "fma.rn.f32": 65_536},
    lines=(
        LineCounters(line=9, global_requests=4096, global_sectors=9216, instructions=196_608),
        LineCounters(line=11, global_requests=32, global_sectors=128, instructions=1024),
    ),
)


def _device(gpu: str, uuid: str) -> DeviceInfo:
    return DeviceInfo(
        kind=DeviceKind.CUDA,
        name=gpu,
        arch="sm_90a",
        uuid=uuid,
        driver="580.95.05",
        cuda_runtime="13.0",
        cublas="13.0.2",
        multiprocessors=132,
        max_clock_mhz=1980,
        l2_bytes=52_428_800,
        fp32_peak_tflops=132 * 128 * 2 * 1980 / 1e6,
        memory_gb_per_s=3352.0,
    )


def _measurement(score: float, half_width: float, count: int, quick: bool) -> Measurement:
    """Return rounds whose median ratio is exactly the score.

    Their interval reaches half_width to either side. Round 5 does not count.
    """
    kept = count - 1
    aside = 2 * kept // 5
    ratios = [score - half_width] * aside + [score] * (kept - 2 * aside)
    ratios += [score + half_width] * aside
    random.Random(count).shuffle(ratios)
    ratios.insert(5, score)
    return Measurement(
        rounds=tuple(
            Round(
                # A power of two, so that dividing by it loses nothing.
                kernel_ms=8,
                baseline_ms=8 * ratio,
                kernel_host_ms=8.02,
                baseline_host_ms=8 * ratio + 0.02,
                kernel_first=i % 4 in (1, 2),
                clock_mhz=1755 if i % 5 else 1740,
                power_w=650 + i % 7,
                throttled=("software thermal slowdown",) if i == 5 else (),
                dropped=i == 5,
                check=0.1,
            )
            for i, ratio in enumerate(ratios)
        ),
        stopped_by=Steadiness.STEADY,
        audit_error=None if quick else 2.2e-6,
        first_launch=FirstLaunch(
            context_ms=180,
            compile_ms=350,
            module_load_ms=1.2,
            first_allocation_ms=0.8,
            first_launch_ms=9.4,
            second_launch_ms=8.2,
        ),
        host_memory=(
            HostMemory(
                kind=HostMemoryKind.PAGEABLE,
                allocate_ms=0.1,
                fill_ms=150,
                to_device_ms=50,
                to_host_ms=60,
                to_device_gb_per_s=8.8,
                to_host_gb_per_s=7.3,
            ),
            HostMemory(
                kind=HostMemoryKind.PINNED,
                allocate_ms=90,
                fill_ms=40,
                to_device_ms=8,
                to_host_ms=8.5,
                to_device_gb_per_s=55,
                to_host_gb_per_s=51,
            ),
        ),
        pinning_pays_after=0.9,
    )
