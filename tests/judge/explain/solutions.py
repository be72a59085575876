"""Evidence of the solutions: compiled and counted now, or read from recorded files."""

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.devices.cpu.device import CpuDevice
from harness.judge.explain.evidence import Evidence
from harness.judge.explain.examination import Examination
from harness.judge.explain.gpu import H100
from harness.judge.stages.count import count_on
from harness.protocol.compiler import Kernel
from harness.protocol.device import Load, MergeLoads, Ready
from harness.protocol.report import Counters, DisassembledKernel
from problem.problem import MATRIX_MULTIPLICATION
from tests.compiled import compiled, disassembled
from tests.sharing import shared

SOLUTIONS = Path(__file__).parents[3] / "solutions"


def device_with(kernel: Kernel) -> tuple[CpuDevice, Ready]:
    """Return a CPU device with the kernel loaded, and its answer to that."""
    device = CpuDevice()
    ready = device.load(Load(kernel=kernel, mostly_watched=True))
    assert isinstance(ready, Ready), ready
    return device, ready


@shared
def evidence_of_source(source: str) -> Evidence:
    """Return the evidence that the rules see of a kernel, compiled and counted now."""
    known = disassembled(source)
    device, ready = device_with(compiled(source))
    asked: Any = SimpleNamespace(ask=device.answer)
    counted = count_on(
        asked, known.launch, ready, problem=MATRIX_MULTIPLICATION, seed=1, seconds=30
    )
    assert isinstance(counted, Counters), counted
    counted = device.merge_loads(MergeLoads(shape=counted.shape, code=known.lines))
    return Evidence.of(known, counted, H100)


def evidence_of(solution: str) -> Evidence:
    return evidence_of_source((SOLUTIONS / f"{solution}.cu").read_text(encoding="utf-8"))


def examined(evidence: Evidence, **how: Any) -> Examination:
    """Return the facts of an examination that found this evidence."""
    return Examination("x", "", None, evidence.facts, **{"counters": evidence.counters} | how)


RECORDED = Path(__file__).parent / "evidence"
KERNELS = Path(__file__).parent / "kernels"


@functools.cache
def recorded(name: str) -> Evidence:
    """Return the evidence that record.py wrote of a solution or of a kernel of the tests."""
    folder = RECORDED if name[0].isdigit() else KERNELS
    facts, counters = (folder / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    kernel = DisassembledKernel.model_validate_json(facts)
    counted = Counters.model_validate_json(counters)
    return Evidence.of(kernel, counted, H100)
