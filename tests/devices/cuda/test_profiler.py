"""Forbidden hardware counters are reported with the remedy."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.devices.cuda import profiler
from harness.protocol.device import NoProfile
from problem.cases import Shape
from tests.judge.explain.ladder import SOLUTIONS
from tests.ptxcpu.runner import compiled

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
