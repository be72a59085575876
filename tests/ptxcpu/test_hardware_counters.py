"""The CPU device counts what an H100 counted. `ncu` wrote its reports of three kernels there, at
256x256x256."""

from collections import defaultdict
from pathlib import Path

import ncu_report
import pytest

from harness.compiling.disassembly import disassemble
from harness.compiling.waits import INSTRUCTION_BYTES
from harness.protocol.device import MergeLoads
from harness.protocol.report import Counters
from problem.cases import Shape
from tests.compiled import compiled, disassembled
from tests.judge.explain.solutions import device_with
from tests.ptxcpu.runner import quantities
from tests.requests import count_on

NCU = Path(__file__).parent / "ncu"
LONG = [pytest.mark.architectures]
METRICS = (
    "memory_l2_theoretical_sectors_global",
    "memory_l1_tag_requests_global",
    "memory_l1_wavefronts_shared",
    "memory_l1_wavefronts_shared_ideal",
)
"""The ideal number of sectors is left out: if lanes read the same word, `ncu` counts as many as if
each lane read another word."""

Quantities = dict[int, list[int]]
"""The quantities that both devices count, for each line that has any."""


def by_hardware(name: str) -> Quantities:
    """Return the sums over the instructions of each line."""
    (launch,) = ncu_report.load_report(str(NCU / f"{name}.ncu-rep")).range_by_idx(0)
    functions = disassemble((NCU / f"{name}.cubin").read_bytes(), "kernel.cu")
    (code,) = (code for name, code in functions.items() if name in launch.name())
    start = min(_values(launch, "inst_executed"))
    found: Quantities = defaultdict(lambda: [0] * len(METRICS))
    for number, metric in enumerate(METRICS):
        for address, value in _values(launch, metric).items():
            line = code[(address - start) // INSTRUCTION_BYTES].line
            if line and value:
                found[line][number] += value
    return dict(found)


def _values(launch: ncu_report.IAction, metric: str) -> dict[int, int]:
    """Return the values of a metric by the address of the instruction."""
    found = launch.metric_by_name(metric)
    addresses = found.correlation_ids()
    return {addresses.as_uint64(i): found.as_uint64(i) for i in range(found.num_instances())}


def by_cpu(name: str) -> Quantities:
    source = (NCU / f"{name}.cu").read_text(encoding="utf-8")
    (device, _), shape = device_with(compiled(source)), Shape(256, 256, 256)
    assert isinstance(device.count(count_on(shape, max_blocks=1 << 20)), Counters)
    counters = device.merge_loads(MergeLoads(shape=shape, code=disassembled(source).lines))
    found = {line.line: [*quantities(line)] for line in counters.lines}
    return {line: each for line, each in found.items() if any(each)}


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("01_naive", marks=LONG),
        pytest.param("02_shared_tile"),
        pytest.param("09_vector_loads", marks=LONG),
    ],
)
def test_the_cpu_device_counts_what_the_hardware_counts(name: str) -> None:
    assert by_hardware(name) == by_cpu(name)
