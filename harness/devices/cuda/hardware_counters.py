"""Reads hardware counters from the report of `ncu`, with NVIDIA's own package."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ncu_report

from harness.compiling.disassembly import Function
from harness.compiling.waits import INSTRUCTION_BYTES, Instruction, operand_registers
from harness.protocol.device import Profile, ProfileLine
from problem.cases import Shape

_STALLED = "smsp__pcsamp_warps_issue_stalled_"
_BY_INSTRUCTION = {
    "warp_instructions": "inst_executed",
    "global_sectors": "memory_l2_theoretical_sectors_global",
    "global_min_sectors": "memory_l2_theoretical_sectors_global_ideal",
    "global_passes": "memory_l1_tag_requests_global",
    "shared_wavefronts": "memory_l1_wavefronts_shared",
    "shared_min_wavefronts": "memory_l1_wavefronts_shared_ideal",
}
_TOTALS = {
    "ns": "gpu__time_duration.sum",
    "fma": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    "tensor": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "l1": "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed",
    "eligible": "smsp__warps_eligible.avg.per_cycle_active",
    "l2": "lts__t_sector_hit_rate.pct",
    "dram_read": "dram__bytes_read.sum",
    "dram_write": "dram__bytes_write.sum",
    "tma": "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum",
}
"""The tensor pipe's metric of hmma counts HGMMA, too, but no products of integers: of
solutions/36_wgmma_one_accumulator.cu it sees 26 of 51 %."""

SECTIONS = ("SourceCounters", "WarpStateStats")
_STATE = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
METRICS = tuple(_TOTALS.values())

_WAITS_FOR_LOADS = {"long_scoreboard": ("LDG", "LD", "LDL"), "short_scoreboard": ("LDS", "LDSM")}
_FURTHEST = 600
"""The number of instructions that are searched backwards for the load that one waits for."""


def read(path: Path, functions: Sequence[Function], entry: str, shape: Shape) -> Profile:
    """Return the launch in the report, which was of this shape. Raises ValueError without one."""
    context = ncu_report.load_report(str(path))
    launches = list(context.range_by_idx(0)) if context.num_ranges() else []
    if not launches:
        raise ValueError("ncu saw no launch of the kernel")
    action = launches[0]
    known = set(action.metric_names())
    code = next((each.instructions for each in functions if each.name == entry), ())
    totals = {
        name: float(action.metric_by_name(metric).as_double()) if metric in known else 0.0
        for name, metric in _TOTALS.items()
    }
    return Profile(
        shape=shape,
        ms=totals["ns"] / 1e6,
        fma_active=totals["fma"] / 100,
        tensor_active=totals["tensor"] / 100,
        issue_active=totals["issue"] / 100,
        l1_active=totals["l1"] / 100,
        warps_eligible=totals["eligible"],
        l2_hit_rate=min(totals["l2"] / 100, 1.0),  # its two counters come from two launches
        dram_bytes=round(totals["dram_read"] + totals["dram_write"]),
        tma_bytes=round(totals["tma"]),
        stalls={
            reason[1]: float(action.metric_by_name(reason[0]).as_double())
            for reason in filter(None, map(_STATE.fullmatch, sorted(known)))
        },
        lines=_lines(action, known, code),
    )


def _lines(action: Any, known: set[str], code: tuple[Instruction, ...]) -> tuple[ProfileLine, ...]:
    counts: dict[int, Counter[str]] = defaultdict(Counter)
    stalls: dict[int, Counter[str]] = defaultdict(Counter)
    executed = _instances(action, "inst_executed")
    start = min(executed, default=0)

    def line(address: int) -> int | None:
        index = (address - start) // INSTRUCTION_BYTES
        return code[index].line if 0 <= index < len(code) else None

    for name, metric in _BY_INSTRUCTION.items():
        if metric in known:
            for address, value in _instances(action, metric).items():
                counts[line(address) or 0][name] += value
    for metric in known:
        reason = metric.removeprefix(_STALLED)
        if reason == metric or reason.endswith("_not_issued"):
            continue
        for address, value in _instances(action, metric).items():
            index = (address - start) // INSTRUCTION_BYTES
            if not 0 <= index < len(code):
                continue
            blamed = producer(code, index, _WAITS_FOR_LOADS.get(reason, ()))
            stalls[code[blamed].line or 0][reason] += value
    return tuple(
        ProfileLine(line=number, stall_samples=dict(+stalls[number]), **counts[number])
        for number in sorted(counts.keys() | stalls.keys())
        if number
    )


def _instances(action: Any, metric: str) -> dict[int, int]:
    """Return the values of a metric by the address of the instruction."""
    found = action.metric_by_name(metric)
    if not found.has_correlation_ids():
        return {}
    addresses = found.correlation_ids()
    return {
        int(addresses.as_uint64(i)): int(found.as_uint64(i)) for i in range(found.num_instances())
    }


def producer(code: tuple[Instruction, ...], index: int, loads: tuple[str, ...]) -> int:
    """Return the index of the load that the instruction waits for, found by searching backwards,
    around the loop if there is one; the instruction's own index if none is found."""
    if not loads:
        return index
    _, wanted = operand_registers(code[index])
    for back in range(1, min(_FURTHEST, len(code))):
        other = (index - back) % len(code)
        each = code[other]
        if each.name in loads and wanted & {*operand_registers(each)[0]}:
            return other
    return index
