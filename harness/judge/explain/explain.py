"""Explain the speed of a kernel from the facts about it."""

from collections.abc import Mapping

from harness.judge import figures
from harness.judge.explain.counts import hot_loop, l1_clocks
from harness.judge.explain.evidence import Evidence
from harness.judge.explain.examination import Examination
from harness.judge.explain.explanation import Advice, Explanation, LineCost, Roof, Unit, UnitTime
from harness.judge.explain.gpu import H100, L2_BYTES, Gpu, gpu_of
from harness.judge.explain.opcodes import Kind, count_kinds
from harness.judge.explain.rules import advice
from harness.judge.explain.workload import (
    Workload,
    blocks_and_waves,
    fill,
    workload_of_code,
    written_products,
)
from harness.protocol.report import CodeLine, Counters, LineCounters
from problem.cases import RANKED


def explain(examined: Examination, named: Gpu | None = None) -> Explanation:
    """Explain a kernel for the GPU that it ran on, or for a named one; else for an H100."""
    facts, counters = examined.kernel, examined.counters
    known = None if named else gpu_of(examined.device)
    gpu = named or known or H100
    # Counters of earlier judges say less of a line.
    counted = counters if counters is not None and counters.warp_instructions else None
    depend = examined.blocks_depend
    evidence = Evidence.of(facts, counted, gpu) if counted else None
    notes = [examined.note] if examined.note else []
    elsewhere = _not_at_the_ranked_size(evidence, gpu, examined.measured_ms) if evidence else ""
    if elsewhere:
        evidence, counted = None, None
        notes.append(elsewhere)
    elif counted and depend and examined.measured_ms is None:
        notes.append(
            f"Counted on a whole launch of {counted.shape}, since blocks depend on one another. "
            f"Branches on the sizes are the same there as at {RANKED.shape}."
        )
    work = evidence.work if evidence else None
    if work is None and depend and not elsewhere:
        work = workload_of_code(facts, gpu)
        if work is not None:
            notes.append(
                "Estimated from the machine code of its loop alone, as if that computed all "
                "products of the ordinary algorithm and its loads took no time."
            )
    blocks, waves = blocks_and_waves(facts, gpu)
    rows, columns, shape = facts.launch.tile_rows, facts.launch.tile_columns, RANKED.shape
    loop = hot_loop(facts, counted)
    findings: tuple[Advice, ...] = advice(evidence) if evidence else ()
    return Explanation(
        name=examined.name,
        gpu=gpu.name,
        assumed=known is None,
        verdict=examined.outcome.verdict if examined.outcome else None,
        verdict_message=examined.outcome.message if examined.outcome else "",
        resources=facts.resources,
        occupancy=facts.occupancy,
        blocks=blocks,
        waves=waves,
        tail=0.0 if depend else 1 - fill(facts, gpu),
        block_bytes=None if depend else 4 * (shape.N * (rows + columns) + rows * columns),
        block_flop=None if depend else 2 * rows * columns * shape.N,
        units=_units(work, gpu) if work else (),
        roofs=_roofs(evidence, gpu) if evidence else (),
        estimated_ms=work.total / gpu.clocks_per_ms if work else None,
        measured_ms=examined.measured_ms,
        mix={
            kind.value: count
            for kind, count in count_kinds(loop.opcodes if loop else facts.instructions).items()
        },
        loop=(loop.first_line, loop.last_line)
        if loop and loop.first_line and loop.last_line
        else None,
        lines=_lines(facts.lines, counted, work),
        findings=findings,
        notes=tuple(notes),
    )


TOO_BUSY = 1.1
"""No unit can be busy for longer than the kernel was measured to take. An estimate may exceed that
by this factor, since counts include the parts of tiles that lie outside of the matrices."""


def _not_at_the_ranked_size(evidence: Evidence, gpu: Gpu, measured_ms: float | None) -> str:
    """Return why the counts do not hold at the ranked size, or an empty text. A kernel may have a
    path of its own for sizes that do not suit it, and advice on that path would be wrong."""
    unit = evidence.work.busiest
    ms = evidence.work.clocks[unit] / gpu.clocks_per_ms
    if measured_ms is None or ms <= TOO_BUSY * measured_ms:
        return ""
    return (
        f"The accesses counted at {evidence.counters.shape} do not hold at {RANKED.shape}: "
        f"the {unit} alone would be busy for {figures.milliseconds(ms)} ms there, but the kernel "
        f"takes {figures.milliseconds(measured_ms)} ms. Accesses are "
        "counted at a size that suits most tiles."
    )


def _units(work: Workload, gpu: Gpu) -> tuple[UnitTime, ...]:
    why = {
        Unit.L1: f"{128 * gpu.l1_passes:.0f} bytes per clock",
        Unit.FMA: f"{gpu.fp32_lanes} multiply-adds per clock",
        Unit.FP64: "float64 arithmetic",
        Unit.SPECIAL: "conversions, reciprocals and the like",
        Unit.INTEGER: "addresses, bounds and so on",
        Unit.LATENCY: "results that warps wait for",
        Unit.ISSUE: "four warp instructions per clock",
        Unit.FETCH: "a loop larger than the instruction cache",
        Unit.TENSOR: "products at the type's peak",
        Unit.L2: f"{L2_BYTES} bytes per clock",
        Unit.DRAM: "A, B and C once",
    }
    times = [
        UnitTime(unit=unit, ms=clocks / gpu.clocks_per_ms, why=why[unit])
        for unit, clocks in work.clocks.items()
    ]
    return tuple(sorted(times, key=lambda time: -time.ms))


def _roofs(evidence: Evidence, gpu: Gpu) -> tuple[Roof, ...]:
    """Return each unit's limit, in useful operations."""
    flop = RANKED.shape.flop
    roofs = [Roof(name="FP32 units", tflops=gpu.fp32_tflops)]
    useful = flop / 2 / evidence.scale
    seconds, products, work = 0.0, [], evidence.tensor_work
    for kind in sorted({kind for kind, _ in work}):
        peak = gpu.tensor_macs(kind)
        share = sum(work.get((kind, by_groups), 0.0) for by_groups in (False, True)) / useful
        if peak is not None and share:
            seconds += share / gpu.tflops(peak)
            count = written_products(share)
            products.append(f"{count} product{'' if count == '1' else 's'} of {kind}")
    if products:
        roofs.append(Roof(name=f"tensor cores ({', '.join(products)})", tflops=1 / seconds))
    clocks = evidence.work.clocks
    for unit, name, per_clock in (
        (Unit.L1, "shared memory and L1", 128.0 * gpu.l1_passes),
        (Unit.L2, "L2 cache", float(L2_BYTES)),
    ):
        moved = clocks[unit] * per_clock * gpu.multiprocessors
        if moved:
            speed = gpu.gb_per_s(per_clock)
            roofs.append(
                Roof(
                    name=name,
                    tflops=flop / moved * speed / 1e3,
                    intensity=flop / moved,
                    gb_per_s=speed,
                )
            )
    return tuple(roofs)


def _lines(
    code: tuple[CodeLine, ...], counters: Counters | None, work: Workload | None
) -> tuple[LineCost, ...]:
    static = {line.line: line for line in code}
    counted = {line.line: line for line in counters.lines} if counters else {}
    total = sum(map(l1_clocks, counted.values())) or 1
    cost_of = _costs(static, counted, work) if work else {}
    costs = []
    for number in sorted(static.keys() | counted.keys()):
        became, cost = static.get(number), counted.get(number)
        kinds = count_kinds(became.opcodes) if became else {}
        costs.append(
            LineCost(
                line=number,
                instructions=sum(kinds.values()),
                kinds={kind.value: count for kind, count in kinds.items()},
                cost=cost_of.get(number),
                **(_memory(cost, total) if cost else {}),
            )
        )
    return tuple(costs)


def _costs(
    code: Mapping[int, CodeLine], counted: Mapping[int, LineCounters], work: Workload
) -> dict[int, float]:
    """Return the share of each line in the work of the units whose work is known by line."""
    by_unit: dict[Unit, dict[int, float]] = {
        Unit.ISSUE: {number: line.warp_instructions for number, line in counted.items()},
        Unit.L1: {number: l1_clocks(line) for number, line in counted.items()},
        Unit.TENSOR: {
            number: count_kinds(code[number].opcodes).get(Kind.TENSOR, 0) if number in code else 0
            for number in counted
        },
    }
    clocks = {unit: work.clocks.get(unit, 0.0) for unit, of in by_unit.items() if any(of.values())}
    total = sum(clocks.values()) or 1.0
    return {
        number: sum(
            clocks[unit] / total * by_unit[unit][number] / sum(by_unit[unit].values())
            for unit in clocks
        )
        for number in counted
    }


def _memory(cost: LineCounters, total: int) -> dict[str, float]:
    found: dict[str, float] = {"l1_share": l1_clocks(cost) / total}
    if cost.global_requests:
        found["sectors_per_request"] = cost.global_sectors / cost.global_requests
        found["min_sectors_per_request"] = cost.global_min_sectors / cost.global_requests
    if cost.global_first_sectors:
        found["reads_again"] = cost.global_sectors / cost.global_first_sectors
    if cost.shared_requests:
        found["wavefronts_per_request"] = cost.shared_wavefronts / cost.shared_requests
        found["min_wavefronts_per_request"] = cost.shared_min_wavefronts / cost.shared_requests
    if cost.warp_instructions:
        found["lanes"] = cost.instructions / cost.warp_instructions
    return found
