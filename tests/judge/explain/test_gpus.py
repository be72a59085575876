"""Explaining for a GPU that is not there."""

from dataclasses import replace

import pytest

from harness.compiling.occupancy import occupancy
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import GPUS, gpu_named
from harness.judge.explain.opcodes import pipeline_clocks
from tests.judge.explain.solutions import examined, recorded
from tests.judge.explain.test_kernels import evidence_of_kernel


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("RTX 4090", "NVIDIA GeForce RTX 4090"),
        ("H100", "NVIDIA H100 80GB HBM3"),
        ("L4", "NVIDIA L4"),
        ("l40s", "NVIDIA L40S"),
        ("t4", "NVIDIA T4"),
    ],
)
def test_a_gpu_is_found_by_a_part_of_its_name(text: str, name: str) -> None:
    assert gpu_named(text).name == name
    for unknown in ("", "Voodoo 2"):
        with pytest.raises(ValueError, match=r"known: H100 80GB HBM3, .*RTX 4090"):
            gpu_named(unknown)


@pytest.mark.parametrize("gpu", GPUS, ids=lambda gpu: gpu.name)
def test_every_gpu_of_the_table_can_be_explained_for(gpu: object) -> None:
    evidence = recorded("09_vector_loads")
    chosen = next(each for each in GPUS if each is gpu)
    room = occupancy(evidence.facts.resources, chosen.arch)
    kernel = evidence.facts.model_copy(update={"occupancy": room})
    found = explain(examined(replace(evidence, facts=kernel)), chosen)
    assert found.gpu == chosen.name and found.assumed
    assert found.estimated_ms is not None and 8 < found.estimated_ms < 500


def test_tensor_cores_of_unknown_speed_are_no_error() -> None:
    evidence = recorded("31_mma_bf16x3")
    gpu = replace(gpu_named("4090"), name="NVIDIA GeForce RTX 5090", arch="sm_120a")
    found = explain(examined(evidence), gpu)
    assert found.units and Unit.TENSOR not in {each.unit for each in found.units}


def test_peaks_are_those_of_the_data_sheets() -> None:
    for text, tflops in (("RTX 4090", 82.6), ("RTX 3090", 35.6), ("A100", 19.5), ("T4", 8.1)):
        assert gpu_named(text).fp32_tflops == pytest.approx(tflops, rel=0.01)
    for text, kind, tflops in (
        ("RTX 4090", "FP16", 165.2),
        ("L4", "FP16", 121),
        ("RTX 3090", "BF16", 71),
        ("A100", "TF32", 156),
        ("T4", "FP16", 65),
    ):
        gpu = gpu_named(text)
        assert gpu.tflops(gpu.tensor_macs(kind) or 0) == pytest.approx(tflops, rel=0.02)
    for text, clocks in (("H100", 0.5), ("A100", 1.0), ("RTX 4090", 16.0), ("T4", 16.0)):
        assert pipeline_clocks({"DFMA": 1}, gpu_named(text)) == {Unit.FP64: clocks}


def test_every_unit_of_double_arithmetic_has_a_bar() -> None:
    evidence = evidence_of_kernel("double_accumulator")
    found = explain(examined(evidence), gpu_named("H100"))
    times = {each.unit: each.ms for each in found.units}
    # 2.06e11 products: 64 in a clock of each of 132 multiprocessors at 1.98 GHz, and two
    # conversions for each, 16 in a clock.
    assert times[Unit.FP64] == pytest.approx(12.3, rel=0.02)
    assert times[Unit.SPECIAL] == pytest.approx(98.6, rel=0.02)
