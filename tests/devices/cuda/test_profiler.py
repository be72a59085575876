"""Forbidden hardware counters are reported with the remedy, and do not stop an explanation."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.cli.views.explanation import screen
from harness.devices.cuda import profiler
from harness.judge.examine import examine
from harness.judge.explain.examination import Examination
from harness.judge.explain.explain import explain
from harness.judge.grade import GradingOptions
from harness.protocol.compiler import Disassemble
from harness.protocol.device import Count, NoProfile, ReadCounters
from harness.protocol.report import Submission
from harness.protocol.timing import TimingWorkers
from problem.cases import Extent, Shape
from problem.problem import Problem
from tests.judge.explain.ladder import SOLUTIONS, device_with
from tests.judge.stages.fakes import FakeCompiler, FakeDevice
from tests.judge.stages.fakes import session as session_of
from tests.ptxcpu.runner import compiled, disassembled

TILE = (SOLUTIONS / "02_shared_tile.cu").read_text(encoding="utf-8")
FORBIDDEN = """\
==PROF== Connected to process 4711 (/usr/bin/python3)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance \
Counters on the target device 0. For instructions on enabling permissions and to get more \
information see https://developer.nvidia.com/ERR_NVGPUCTRPERM
==PROF== Disconnected from process 4711"""
"""In the words of ncu."""


def profiled_by(said: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> NoProfile:
    """Profile with a fake ncu that prints this and writes nothing."""
    ncu = folder / "ncu"
    ncu.write_text(f"#!/bin/sh\ncat <<'SAID'\n{said}\nSAID\nexit 1\n")
    ncu.chmod(0o755)
    kernel = compiled(TILE)
    with monkeypatch.context() as patched:
        patched.setattr(
            profiler.pathfinder, "find_nvidia_binary_utility", {"ncu": str(ncu)}.__getitem__
        )
        found = profiler.profile(kernel, Shape(32, 32, 32), 60)
    assert isinstance(found, NoProfile)
    return found


def test_forbidden_counters_come_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    why = profiled_by(FORBIDDEN, tmp_path, monkeypatch).why
    assert "only administrators" in why and "NVreg_RestrictProfilingToAdminUsers=0" in why


def test_other_errors_of_ncu_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why = profiled_by("==ERROR== Out of memory", tmp_path, monkeypatch).why
    assert why == "ncu wrote no report: ==ERROR== Out of memory"


def test_an_explanation_continues_without_counters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The CPU device counts if a GPU's counters are forbidden."""
    forbidden = profiled_by(FORBIDDEN, tmp_path, monkeypatch)
    kernel = compiled(TILE)

    class Gpu(FakeDevice):
        def ask(self, request: Any) -> Any:
            return forbidden if isinstance(request, ReadCounters) else super().ask(request)

    class Cpu(FakeDevice):
        def ask(self, request: Any) -> Any:
            if isinstance(request, Count):
                return device_with(kernel).count(request)
            return super().ask(request)

    class Compiler(FakeCompiler):
        def ask(self, request: Any) -> Any:
            made = disassembled(TILE) if isinstance(request, Disassemble) else kernel
            return super().ask(request).model_copy(update={"kernel": made})

    gpu = Gpu()
    timing = TimingWorkers(gpu, gpu, checker=gpu)
    session = session_of(Compiler(), gpu, cpu_sanitizer=Cpu(), timing=timing)
    few = Extent(4, 1, 1, 1 << 22, 1 << 24)
    monkeypatch.setattr(Problem, "extent", property(lambda _: lambda *__: few))
    submission = Submission(name="tile", author="ada", sha256="0" * 64, source=TILE)
    examined = examine(submission, session, GradingOptions(quick=True, seed=3))
    assert isinstance(examined, Examination) and examined.outcome is None
    console = Console(file=io.StringIO(), width=1000)
    console.print(screen(explain(examined), TILE))
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert forbidden.why in shown
    assert "wavefronts of shared memory for each multiply-add" in shown
