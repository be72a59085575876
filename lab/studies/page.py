"""The tables of a study, as Markdown, and its plots, as one page."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import plotly.graph_objects as go

from harness.judge import figures
from harness.protocol.report import Report
from lab.studies.job import Copies, StudyResults, Time
from lab.studies.plan import CLUSTERS, OUTPUTS, SIDES, STEPS
from problem.cases import RANKED
from problem.reference import MAX_ERROR

_PUBLISHED_WIDTHS = {
    8: ((0.197, None, None), (0.229, None, None)),
    16: ((1.890, 1.921, None), (1.592, 1.878, None)),
    32: ((15.675, 12.810, 13.409), (12.242, 15.269, 15.334)),
    64: ((117.0, 101.9, 71.8), (102.4, 116.2, 95.2)),
    128: ((633.4, 649.2, 346.1), (501.7, 730.7, 487.0)),
    256: ((1125, 1268, 1512), (1561, 2002, 2195)),
    512: ((1301, 1332, 1391), (1758, 2993, 3004)),
    1024: ((1387, 1295, 1361), (1618, 3120, 3822)),
    2048: ((1215, 1145, 1237), (1213, 2893, 3801)),
    4096: ((800, 1092, 1153), (876, 2709, 3825)),
}
"""GFLOP/s of an article with an NVVP profile, on a GPU that it does not name: by width, naive and
shared, in blocks of 8x8, 16x16 and 32x32."""

_PUBLISHED_OUTPUTS = {1: 3.670, 2: 4.800, 4: 6.019, 8: 6.772, 16: 6.665, 32: 5.323}
"""TFLOP/s of the same article, by outputs a thread."""


@dataclass(frozen=True)
class Chapter:
    """One study: what it asks, what was found, and where that is drawn."""

    title: str
    text: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    figure: Any = None
    notes: tuple[str, ...] = field(default=())


def chapters(
    results: StudyResults,
    graded: Sequence[Report],
    clusters: Sequence[Report] = (),
) -> Iterator[Chapter]:
    """graded: reports that say what a first launch costs. clusters: those of the study's kernels
    with clusters of blocks."""
    yield from _widths(results)
    yield _outputs(results)
    yield _steps(results)
    first = [report for report in graded if report.measurement is not None]
    if first:
        yield _first_launches(first)
    yield _copies(results)
    if _series(results, "cluster"):
        yield _clusters(results, clusters)
    yield _ladder(results)
    yield _errors(results)


def markdown(results: StudyResults, found: Sequence[Chapter]) -> str:
    """All tables."""
    parts = [f"# Studies\n\nMeasured on one {results.gpu}, {results.date}, by `study`."]
    for chapter in found:
        lines = [
            f"## {chapter.title}",
            "",
            chapter.text,
            "",
            "| " + " | ".join(chapter.head) + " |",
            "|" + "---|" + "---:|" * (len(chapter.head) - 1),
            *("| " + " | ".join(row) + " |" for row in chapter.rows),
            *(f"\n{note}" for note in chapter.notes),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def page(results: StudyResults, found: Sequence[Chapter]) -> str:
    """Tables and plots; the charting library is in the page, so that it needs no network."""
    parts, script = [], True
    for chapter in found:
        table = _html_table(chapter.head, chapter.rows)
        parts.append(f"<h2>{html.escape(chapter.title)}</h2><p>{html.escape(chapter.text)}</p>")
        if chapter.figure is not None:
            parts.append(chapter.figure.to_html(full_html=False, include_plotlyjs=script))
            script = False
        parts += [table, *(f"<p>{html.escape(note)}</p>" for note in chapter.notes)]
    title = f"Studies on an {results.gpu}"
    style = (
        "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
        "table{border-collapse:collapse;display:block;overflow-x:auto}"
        "td,th{padding:.2rem .6rem;text-align:right;border-bottom:1px solid #ccc}"
        "td:first-child,th:first-child{text-align:left}"
    )
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f"<style>{style}</style><h1>{html.escape(title)}</h1><p>{results.date}</p>"
        + "".join(parts)
        + "</html>\n"
    )


def _html_table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def row(cells: Sequence[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(cells, "td") for cells in rows) + "</table>"


def _series(results: StudyResults, name: str) -> list[Time]:
    return [time for time in results.times if time.series == name]


def _widths(results: StudyResults) -> Iterator[Chapter]:
    times = {(time.kernel, time.shape.M): time for time in _series(results, "width")}
    for at, name in enumerate(("naive", "shared")):
        rows = []
        for width, published in _PUBLISHED_WIDTHS.items():
            found = [times.get((f"{name} {side}x{side}", width)) for side in SIDES]
            theirs = [_number(value) for value in published[at]]
            rows.append((str(width), *(_gflops(time) for time in found), *theirs))
        figure = _figure("width", "GFLOP/s", log=True)
        for side in SIDES:
            own = [(w, times[f"{name} {side}x{side}", w]) for w in _PUBLISHED_WIDTHS if w >= side]
            figure.add_scatter(
                x=[width for width, _ in own],
                y=[time.gflops for _, time in own],
                name=f"{side}x{side}",
                mode="lines+markers",
            )
        sides = tuple(f"{side}×{side}" for side in SIDES)
        yield Chapter(
            f"Throughput over width, {name}",
            "GFLOP/s of a product of square matrices in blocks of each size; to the right the "
            "figures of an article, on a GPU that it does not name.",
            ("width", *sides, *(f"{side}, published" for side in sides)),
            tuple(rows),
            figure,
        )


def _outputs(results: StudyResults) -> Chapter:
    times = {time.kernel: time for time in _series(results, "outputs")}
    found = [(count, times[f"outputs {count}"]) for count in OUTPUTS]
    figure = _figure("outputs a thread", "TFLOP/s", log=True)
    figure.add_scatter(
        x=[count for count, _ in found],
        y=[time.gflops / 1e3 for _, time in found],
        mode="lines+markers",
    )
    return Chapter(
        "Outputs a thread",
        f"06_outputs_per_thread at {RANKED.shape} with 1 to 32 outputs a thread.",
        ("outputs", "ms", "TFLOP/s", "TFLOP/s, published"),
        tuple(
            (
                str(count),
                figures.milliseconds(time.ms),
                figures.tflops(time.gflops / 1e3),
                f"{_PUBLISHED_OUTPUTS[count]:.3f}",
            )
            for count, time in found
        ),
        figure,
    )


def _steps(results: StudyResults) -> Chapter:
    times = {time.kernel: time for time in _series(results, "steps")}
    base = times[STEPS[0]]
    named = {
        STEPS[0]: "16×16 tile in shared memory",
        STEPS[1]: "the same, padded against bank conflicts",
        STEPS[2]: "the same, B transposed first",
    }
    rows = [
        (named[name], figures.milliseconds(times[name].ms), f"{base.ms / times[name].ms:.2f}×")
        for name in STEPS
    ]
    size = max(copy.bytes for copy in results.copies)
    by_kind = {copy.kind: copy for copy in results.copies if copy.bytes == size}
    pageable, pinned = by_kind["pageable"], by_kind["pinned"]
    rows.append(
        (
            f"pinned host memory, copying {size >> 20} MiB",
            f"{figures.milliseconds(pageable.copy_ms)} → {figures.milliseconds(pinned.copy_ms)}",
            f"{pageable.copy_ms / pinned.copy_ms:.2f}×",
        )
    )
    return Chapter(
        "Three usual optimisations, one at a time",
        "Each against the plain tile; pinned memory changes no kernel, so its row has copies.",
        ("change", "ms", "speed"),
        tuple(rows),
    )


def _first_launches(reports: Sequence[Report]) -> Chapter:
    rows = []
    for report in reports:
        assert report.measurement is not None
        first = report.measurement.first_launch
        parts = (
            first.context_ms,
            first.compile_ms,
            first.module_load_ms,
            first.first_allocation_ms,
            first.first_launch_ms,
            first.second_launch_ms,
        )
        steady = report.score.kernel_ms if report.score else None
        rows.append(
            (
                report.submission.name,
                *(figures.milliseconds(part) for part in parts),
                figures.milliseconds(steady),
            )
        )
    return Chapter(
        "The first launch, and the steady state",
        "What a program pays once, in milliseconds, from the judge's reports.",
        (
            "kernel",
            "context",
            "compile",
            "load module",
            "allocate",
            "first launch",
            "second",
            "steady",
        ),
        tuple(rows),
    )


def _copies(results: StudyResults) -> Chapter:
    sizes = sorted({copy.bytes for copy in results.copies})
    by = {(copy.kind, copy.bytes): copy for copy in results.copies}
    rows = []
    figure = _figure("bytes", "GB/s", log=True)
    for size in sizes:
        pageable, pinned = by["pageable", size], by["pinned", size]
        after = pays_after(pageable, pinned)
        rows.append(
            (
                _bytes(size),
                f"{_speed(pageable, pageable.first_copy_ms):.1f}",
                f"{_speed(pageable, pageable.copy_ms):.1f}",
                f"{_speed(pinned, pinned.copy_ms):.1f}",
                f"{pinned.allocate_ms:.2f}",
                "never" if after is None else f"{after:.0f}",
            )
        )
    for kind in ("pageable", "pinned"):
        figure.add_scatter(
            x=sizes,
            y=[_speed(by[kind, size], by[kind, size].copy_ms) for size in sizes],
            name=kind,
            mode="lines+markers",
        )
    return Chapter(
        "Pageable, pinned, and reused pinned memory",
        "Copies to the GPU, GB/s. Pinning costs its allocation once; memory that is reused pays "
        "for it after so many copies.",
        (
            "size",
            "pageable, first",
            "pageable",
            "pinned, reused",
            "pinning, ms",
            "pays after, copies",
        ),
        tuple(rows),
        figure,
    )


def pays_after(pageable: Copies, pinned: Copies) -> float | None:
    """Copies until pinned memory is ahead, its allocation included; None where it never is."""
    saved = pageable.copy_ms - pinned.copy_ms
    extra = pinned.allocate_ms - pageable.allocate_ms
    if saved <= 0:
        return None
    return max(1.0, -(-extra // saved))


def _clusters(results: StudyResults, graded: Sequence[Report]) -> Chapter:
    judged = {report.submission.name: report for report in graded}
    times = {time.kernel: time for time in _series(results, "cluster")}
    alone = times[CLUSTERS[0][0]].ms
    figure = _figure("blocks of a cluster", "TFLOP/s", log=False)
    for how, label in enumerate(("distributed", "multicast")):
        own = [
            (blocks, times[name]) for name, blocks, sent in CLUSTERS if sent == how or blocks == 1
        ]
        figure.add_scatter(
            x=[blocks for blocks, _ in own],
            y=[time.gflops / 1e3 for _, time in own],
            name=label,
            mode="lines+markers",
        )
    ways = ("each reads the others' shared memory", "each copy is sent to all")
    return Chapter(
        "Clusters: distributed shared memory, multicast, and neither",
        f"A 128×128 tile at {RANKED.shape}; blocks of a cluster need the same tile of B, and "
        "each copies its share. The CPU device runs them all, too, and finds nothing wrong; by its "
        "counts the L2 cache is busy a tenth of the time, so that there is nothing to gain by "
        "asking it for less, and what the blocks wait for each other is lost.",
        ("cluster", "the rest of B", "ms", "TFLOP/s", "speed", "graded"),
        tuple(
            (
                f"{blocks} blocks" if blocks > 1 else "none",
                ways[sent] if blocks > 1 else "–",
                figures.milliseconds(times[name].ms),
                figures.tflops(times[name].gflops / 1e3),
                f"{alone / times[name].ms:.3f}×",
                _verdict(judged.get(re.sub(r"\W+", "_", name))),
            )
            for name, blocks, sent in CLUSTERS
        ),
        figure,
    )


def _verdict(report: Report | None) -> str:
    if report is None:
        return "–"
    score = f", {report.score.ratio:.3f} × cuBLAS" if report.score else ""
    return f"{report.outcome.verdict}{score}"


def _ladder(results: StudyResults) -> Chapter:
    times = _series(results, "ladder")
    widths = sorted({time.shape.M for time in times})
    cublas = {time.shape.M: time.ms for time in times if time.kernel is None}
    names = sorted({time.kernel for time in times if time.kernel})
    by = {(time.kernel, time.shape.M): time.ms for time in times}
    figure = _figure("width", "× cuBLAS", log=True)
    rows = []
    for name in names:
        ratios = [cublas[width] / by[name, width] for width in widths]
        rows.append((name, *(f"{ratio:.3f}" for ratio in ratios)))
        figure.add_scatter(x=widths, y=ratios, name=name, mode="lines+markers")
    return Chapter(
        "The ladder over sizes",
        "Times of cuBLAS SGEMM over those of the kernel, for square matrices; the judge's scores, "
        "with their intervals, are in the README.",
        ("kernel", *(str(width) for width in widths)),
        tuple(rows),
        figure,
    )


def _errors(results: StudyResults) -> Chapter:
    sums = sorted({each.N for each in results.errors})
    names = list(dict.fromkeys(each.arithmetic for each in results.errors))
    by = {(each.arithmetic, each.N): each.error for each in results.errors}
    figure = _figure("N", "error of the worst block", log=True)
    figure.update_yaxes(type="log")
    figure.add_hline(y=MAX_ERROR, line_dash="dash", annotation_text="limit")
    for name in names:
        figure.add_scatter(x=sums, y=[by[name, N] for N in sums], name=name, mode="lines+markers")
    return Chapter(
        "The error of each arithmetic over the length of the sum",
        f"Of the worst 16×16 block of a 512×512 C on U(-1,1), by the problem's rule; "
        f"{figures.error(MAX_ERROR)} is allowed.",
        ("arithmetic", *(f"N = {N}" for N in sums)),
        tuple((name, *(figures.error(by[name, N]) for N in sums)) for name in names),
        figure,
    )


def _figure(x: str, y: str, log: bool) -> Any:
    figure = go.Figure()
    figure.update_layout(
        xaxis_title=x, yaxis_title=y, height=420, margin={"t": 20, "b": 50, "l": 60, "r": 20}
    )
    if log:
        figure.update_xaxes(type="log", dtick="D2")
    return figure


def _speed(copy: Copies, ms: float) -> float:
    return copy.bytes / ms / 1e6


def _bytes(size: int) -> str:
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"


def _gflops(time: Time | None) -> str:
    return _number(time.gflops if time else None)


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value < 100 else f"{value:.0f}"
