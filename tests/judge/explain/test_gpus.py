"""Explaining for a GPU that is not there."""

from dataclasses import replace

import pytest

from harness.compiling.occupancy import occupancy
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import GPUS, H100, Gpu, gpu_named, gpu_of
from harness.judge.explain.opcodes import pipeline_clocks
from tests.judge.explain.solutions import examined, recorded
from tests.judge.stages.fakes import INFO


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
    here, there = (
        evidence.work.clocks[Unit.L1] * gpu.multiprocessors
        for gpu, evidence in ((chosen, replace(evidence, gpu=chosen)), (H100, evidence))
    )
    assert here == pytest.approx(there * (2 if chosen.arch == "sm_75" else 1))
    for_fp32 = explain(examined(recorded("17_split_tail")), chosen).findings
    assert ("tensor-cores" in {each.rule for each in for_fp32}) is (chosen.arch == "sm_90a")


def test_tensor_cores_of_unknown_speed_are_no_error() -> None:
    evidence = recorded("31_mma_bf16x3")
    gpu = replace(gpu_named("4090"), name="NVIDIA GeForce RTX 5090", arch="sm_120a")
    found = explain(examined(evidence), gpu)
    assert found.units and Unit.TENSOR not in {each.unit for each in found.units}


def test_peaks_are_those_of_the_data_sheets() -> None:
    for text, tflops, gb_per_s, mib in (
        ("RTX 4090", 82.6, 1008, 72),
        ("RTX 3090", 35.6, 936, 6),
        ("A100", 19.5, 2039, 40),
        ("T4", 8.1, 320, 4),
        ("A10", 31.2, 600, 6),
        ("L40S", 91.6, 864, 96),
        ("H200", 67, 4800, 50),
    ):
        gpu = gpu_named(text)
        assert gpu.fp32_tflops == pytest.approx(tflops, rel=0.01)
        assert gpu.memory_gb_per_s == pytest.approx(gb_per_s, rel=0.03)
        assert gpu.l2_bytes == mib << 20
    for text, kind, tflops in (
        ("RTX 4090", "FP16", 165.2),
        ("L4", "FP16", 121),
        ("RTX 3090", "BF16", 71),
        ("A100", "TF32", 156),
        ("T4", "FP16", 65),
        ("A10", "FP16", 125),
        ("L40S", "BF16", 362),
        ("A6000", "TF32", 77.4),
        ("L4", "INT8", 242),
    ):
        gpu = gpu_named(text)
        assert gpu.tflops(gpu.tensor_macs(kind) or 0) == pytest.approx(tflops, rel=0.02)
    for text, clocks in (("H100", 0.5), ("A100", 1.0), ("RTX 4090", 16.0), ("T4", 16.0)):
        assert pipeline_clocks({"DFMA": 1}, gpu_named(text)) == {Unit.FP64: clocks}


def test_the_gpu_of_a_report_has_its_own_figures() -> None:
    device = INFO.model_copy(update={"multiprocessors": 10, "max_clock_mhz": 1000})
    assert gpu_of(device) is None, "it does not tell the bandwidth of its memory"
    device = device.model_copy(update={"memory_gb_per_s": 100.0})
    assert gpu_of(device) == Gpu(device.name, device.arch, 10, 1000, 100.0, H100.l2_bytes)
    device = device.model_copy(update={"l2_bytes": 7 << 20})
    assert gpu_of(device) == Gpu(device.name, device.arch, 10, 1000, 100.0, 7 << 20)
