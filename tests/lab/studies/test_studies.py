"""The studies: what is planned, and what becomes of results that an H100 gave."""

from __future__ import annotations

import json

import pytest

from harness.cli.commands._command import Exit
from harness.cli.main import main
from harness.compiling.compiler import compile_source, disassemble_kernel
from harness.devices.available import why_no_cuda
from harness.devices.cpu.device import CpuDevice
from harness.judge.explain.explanation import Unit
from harness.judge.explain.gpu import H100
from harness.judge.explain.rules import Evidence
from harness.protocol.compiler import Compile, Compiled, Disassemble, Kernel
from harness.protocol.device import Counted, Finished, Load, Ready, Run, Sanitized
from harness.protocol.report import Accepted, Report, Unscored
from lab.studies.job import Copies, Grading, Scatter, Situation, StudyResults, Withheld
from lab.studies.page import chapters, markdown, page, pays_after
from lab.studies.plan import CLUSTERS, OUTPUTS, SIDES, sources
from lab.studies.scatter import summary
from problem.cases import Case, Shape
from problem.reference import compare
from tests.judge.explain.ladder import SOLUTIONS
from tests.requests import count_on, sanitize_on

RESULTS = SOLUTIONS.parent / "reports" / "h100-study.json"


@pytest.fixture(scope="module")
def results() -> StudyResults:
    return StudyResults.model_validate_json(RESULTS.read_bytes())


def test_every_kernel_of_a_study_has_its_own_constants() -> None:
    texts = sources(SOLUTIONS)
    for side in SIDES:
        assert f"SIDE = {side};" in texts[f"naive {side}x{side}"]
        assert f"SIDE = {side};" in texts[f"shared {side}x{side}"]
    for count in OUTPUTS:
        assert f"OUTPUTS = {count};" in texts[f"outputs {count}"]
        assert f"tile={16 * count}x16" in texts[f"outputs {count}"]


def on_cpu(name: str) -> tuple[CpuDevice, Kernel]:
    answer = compile_source(Compile(source=sources(SOLUTIONS)[name]))
    assert isinstance(answer, Compiled), answer
    device = CpuDevice()
    ready = device.load(Load(kernel=answer.kernel))
    assert isinstance(ready, Ready), ready
    return device, answer.kernel


@pytest.mark.parametrize("name", [name for name, _, _ in CLUSTERS])
def test_what_the_cpu_device_says_of_clusters(name: str) -> None:
    """Right in whole tiles and at the edges, and clean."""
    device, _ = on_cpu(name)
    for case in (Case(Shape(512, 64, 256)), Case(Shape(130, 19, 40))):
        A, B = case.draw(1)
        done = device.answer(Run(shape=case.shape, A=A, B=B, seconds=60))
        assert isinstance(done, Finished) and compare(A, B, done.C).passed
    watched = device.sanitize(sanitize_on(Shape(512, 32, 128)))
    assert isinstance(watched, Sanitized) and not watched.findings and not watched.stopped


def test_of_a_tile_the_l2_cache_has_little_to_do() -> None:
    """So that sharing tiles among blocks has nothing to gain."""
    device, kernel = on_cpu("cluster of 1")
    known = disassemble_kernel(Disassemble(kernel=kernel)).kernel
    counted = device.count(count_on(Shape(256, 1024, 256), 2, code=known.lines))
    assert isinstance(counted, Counted)
    work = Evidence(known, counted.counters, H100).work
    assert work.clocks[Unit.L2] < 0.12 * work.total


def test_clusters_are_held_against_none(results: StudyResults) -> None:
    tile = next(time for time in results.times if time.kernel == "outputs 8")
    times = tuple(
        tile.model_copy(update={"series": "cluster", "kernel": name, "ms": 10.0 / blocks})
        for name, blocks, _ in CLUSTERS
    )
    study = results.model_copy(update={"times": (*results.times, *times)})
    chapter = next(each for each in chapters(study, (), ()) if each.title.startswith("Clusters"))
    assert [row[-2] for row in chapter.rows] == ["1.000×", *["2.000×"] * 2, *["4.000×"] * 2]


def test_every_cluster_was_graded_on_a_gpu(results: StudyResults) -> None:
    text = (RESULTS.parent / "h100-clusters.jsonl").read_text(encoding="utf-8")
    graded = [Report.model_validate_json(line) for line in text.splitlines()]
    found = chapters(results, (), (), graded)
    chapter = next(each for each in found if each.title.startswith("Clusters"))
    assert all(row[-1].startswith("accepted, 0.") for row in chapter.rows)


def test_tables_hold_what_was_measured(results: StudyResults) -> None:
    found = tuple(chapters(results, (), ()))
    text = markdown(results, found)
    naive = next(chapter for chapter in found if chapter.title.endswith("naive"))
    measured = next(
        time for time in results.times if time.kernel == "naive 16x16" and time.shape.M == 4096
    )
    row = next(row for row in naive.rows if row[0] == "4096")
    assert row[2] == f"{measured.gflops:.0f}" and row[5] == "1092"
    assert all(f"| {error.arithmetic} |" in text for error in results.errors)


def test_only_what_keeps_to_float32_stays_within_the_limit(results: StudyResults) -> None:
    outside = {each.arithmetic for each in results.errors if each.error > 1e-5}
    assert outside == {"cuBLAS TF32", "FP16 inputs"}


def test_the_page_needs_no_network(results: StudyResults) -> None:
    text = page(results, tuple(chapters(results, (), ())))
    assert "plotly" in text and 'src="http' not in text
    assert text.count("Plotly.newPlot(") >= 5


@pytest.mark.parametrize(
    ("allocate", "copy", "after"), [(1.0, 0.5, 2), (0.0, 0.5, 1), (1.0, 1.0, None)]
)
def test_when_pinning_pays(allocate: float, copy: float, after: float | None) -> None:
    def memory(kind: str, allocate_ms: float, copy_ms: float) -> Copies:
        given = {"kind": kind, "bytes": 4096, "first_copy_ms": copy_ms}
        text = json.dumps({**given, "allocate_ms": allocate_ms, "copy_ms": copy_ms})
        return Copies.model_validate_json(text)

    assert pays_after(memory("pageable", 0.0, 1.0), memory("pinned", allocate, copy)) == after


def test_gradings_that_scatter_are_told_by_gpu_and_situation(results: StudyResults) -> None:
    def graded(situation: Situation, gpu: str, score: float) -> Grading:
        low, high = score - 0.001, score + 0.001
        return Grading(situation=situation, gpu=gpu, score=score, low=low, high=high, ms=7.0)

    gradings = (
        *(graded("alone", "GPU-1", score) for score in (0.99, 1.0, 1.01)),
        *(graded("and every core busy", "GPU-2", score) for score in (1.1, 1.1)),
    )
    found = Scatter(model="H200", date="today", kernel="17", gradings=gradings)
    chapter = list(chapters(results, (), [found]))[-1]
    first, second = chapter.rows
    assert first[1:6] == ("GPU-1, alone", "3", "1.000", "2.00%", "±0.10%")
    assert second[1:5] == ("GPU-2, and every core busy", "2", "1.100", "0.00%")
    assert not chapter.notes


def test_a_situation_without_a_score_is_named(results: StudyResults) -> None:
    text = (RESULTS.parent / "h200-scatter.json").read_text(encoding="utf-8")
    found = Scatter.model_validate_json(text)
    chapter = list(chapters(results, (), [found]))[-1]
    assert len(chapter.rows) == 4
    (note,) = chapter.notes
    assert "4 gradings while every core was busy gave no score" in note
    assert "in 20 of 30 rounds the host's clock and the GPU's do not agree" in note


def test_what_the_judge_says_in_place_of_a_score_is_kept() -> None:
    text = (RESULTS.parent / "h100-five-in-a-row.jsonl").read_text(encoding="utf-8")
    scored = Report.model_validate_json(text.splitlines()[0])
    assert isinstance(scored.outcome, Accepted)
    why = Unscored(reason="clocks", message="the clocks do not agree")
    without = scored.model_copy(
        update={"outcome": scored.outcome.model_copy(update={"score": why})}
    )
    found = summary([("alone", [scored]), ("and every core busy", [without])])
    assert len(found.gradings) == 1
    assert found.withheld == (
        Withheld(situation="and every core busy", why="the clocks do not agree"),
    )


def test_without_a_gpu_nothing_scatters(capsys: pytest.CaptureFixture[str]) -> None:
    if why_no_cuda() is None:
        pytest.skip("there is a GPU")
    assert main(["study", "--scatter", "2"]) == Exit.NO_ANSWER
    assert "gradings scatter on GPUs" in capsys.readouterr().err
