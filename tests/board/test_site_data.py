"""What the pages of the site are made of, before any of it is HTML."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.board import site as making
from harness.board.document import Document, StoreError
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.leagues import Leagues
from harness.board.ranking import Filter, rank
from harness.board.site import (
    Site,
    board_page,
    boards_by_gpu,
    entry_page,
    file_names,
    runs_page,
    templates,
)
from harness.judge.explain.explanation import Roof
from harness.protocol.report import Badge, Report
from problem.cases import RANKED
from tests.board.factory import H100, entry, rejected, report, uncompilable, wrong

NOW = Edition.current()
LEAGUES = Leagues()


def test_a_board_has_a_file_named_after_its_gpu_and_the_first_is_the_first_page() -> None:
    gpus = ["NVIDIA H100 80GB HBM3", "NVIDIA L4", "-Tesla (TM) V100-", "日本"]
    assert file_names(gpus) == {
        gpus[0]: "index.html",
        gpus[1]: "nvidia-l4-1.html",
        gpus[2]: "tesla-tm-v100-2.html",
        gpus[3]: "gpu-3.html",
    }


def test_runs_are_shown_newest_first_with_what_became_of_each() -> None:
    runs = [
        entry("ranked", day=1),
        entry("quick", quick=True, day=2),
        entry("unscored", score=None, day=3),
        entry("old", edition=Edition("0.0.1", NOW.cases), day=4),
        Entry.of(rejected(), "x"),
        entry("ranked", score=0.8, day=5),
    ]
    page = runs_page(runs, rank(runs, NOW), NOW)
    assert [(made.name, became) for made, became in page["runs"]] == [
        ("ranked", "accepted"),
        ("old", "regrade"),
        ("unscored", "unscored"),
        ("quick", "quick"),
        ("ranked", "ranked"),
        ("broken", "memory-error"),
    ]
    assert page["common"] == {"cases": f"cases {NOW.cases}"}
    old = [entry("old", edition=Edition("0.0.1", NOW.cases))]
    assert [became for _, became in runs_page(old, [], NOW)["runs"]] == ["accepted"]


def test_of_runs_of_one_moment_the_order_is_always_the_same() -> None:
    one, other = (entry()._replace(id=letter) for letter in "ab")
    for runs in ([one, other], [other, one]):
        assert [made.id for made, _ in runs_page(runs, [], NOW)["runs"]] == ["b", "a"]


def boards(*entries: Entry) -> Any:
    return boards_by_gpu(entries, NOW, LEAGUES)


def test_every_gpu_has_a_board_in_every_league() -> None:
    made = boards(
        entry("a", cores=Badge.TENSOR_CORES),
        entry("b", score=0.8),
        entry("c", gpu="NVIDIA L4", launch=Badge.DECLARED_LAUNCH),
    )
    assert [*made] == [H100, "NVIDIA L4"]
    names = [[row.entry.name for row in board.rows] for board in made[H100]]
    assert names == [["a", "b"], ["a", "b"], [], ["b"], ["b"], [], ["a"], ["a"], []]
    assert {board.gpu for board in made["NVIDIA L4"]} == {"NVIDIA L4"}
    assert all(board.edition == NOW for board in made["NVIDIA L4"])


def test_a_page_has_each_row_once_with_its_rank_in_every_league() -> None:
    best = entry("c", "ada", 0.5, cores=Badge.CUDA_CORES, day=3)
    entries = [
        entry("t", "ada", 1.6, cores=Badge.TENSOR_CORES)._replace(own=True),
        entry("c", "ada", 0.9, day=1),
        entry("d", "bob", 0.8, launch=Badge.DECLARED_LAUNCH, day=1),
        best._replace(name="t", code="0" * 64),  # the best of its name among CUDA cores alone
    ]
    made = boards(*entries)[H100]
    page = board_page(made, LEAGUES)
    assert page["board"] is made[0]
    assert [(line.row.entry.score, line.ranks, line.first_league) for line in page["rows"]] == [
        (1.6, "1,1,,,,,1,1,", "1"),
        (0.9, "2,2,,1,1,,,,", "2"),
        (0.8, "3,,1,2,,1,,,", "3"),
        (0.5, ",,,3,2,,,,", ""),
    ]
    assert page["claims"] == 3 and page["days"] == 3
    assert page["ranked"] == RANKED.shape
    assert page["core_labels"] == LEAGUES.core_labels()
    assert page["launch_labels"] == LEAGUES.launch_labels()
    assert page["board"].gpu == H100 and "driver" in page["common"]


def test_records_of_both_kinds_of_cores_are_in_order_of_time() -> None:
    entries = [
        entry("c", score=0.5, day=1),
        entry("t", score=1.0, day=2, cores=Badge.TENSOR_CORES),
        entry("c", score=0.6, day=3),
        entry("t", score=1.1, day=0, cores=Badge.TENSOR_CORES),
    ]
    records = board_page(boards(*entries)[H100], LEAGUES)["records"]
    assert [made.score for made in records] == [1.1, 0.5, 0.6]
    kinds = (Badge.CUDA_CORES, Badge.TENSOR_CORES)
    entries = [entry("k", score=0.5 + n / 10, day=n, cores=kinds[n % 2]) for n in range(8)]
    records = board_page(boards(*entries)[H100], LEAGUES)["records"]
    assert [made.score for made in records] == [0.5 + n / 10 for n in range(8)]


def page_of(made: Report) -> dict[str, Any]:
    document = Document.of(made)
    return entry_page(Entry.of(document.report, document.id), document.report)


def test_a_submissions_page_has_what_was_found() -> None:
    failed = rejected()
    page = page_of(failed)
    assert page["findings"] == failed.outcome.findings  # type: ignore[union-attr]
    assert page["counterexample"] is None
    shown = page_of(wrong())
    assert shown["counterexample"].worst_block == (2, 0) and shown["findings"] == ()
    assert len(shown["listing"].lines) > 5 and shown["entry"].name == "wrong"


def test_a_page_explains_what_can_be_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    nothing = {"device": None, "kernel": None, "verification": None, "counters": None}
    page = page_of(uncompilable().model_copy(update=nothing | {"sanitizing": ()}))
    assert (page["why"], page["heat"], page["roof"]) == (None, {}, None)
    roof = Roof(name="tensor cores, two products", tflops=400.0)
    found = SimpleNamespace(
        units=(), notes=(), lines=[SimpleNamespace(line=9, l1_share=0.5)], roofs=(roof,)
    )
    monkeypatch.setattr(making, "explain", lambda examined: found)
    page = page_of(report(cores=Badge.TENSOR_CORES))
    assert (page["why"], page["heat"], page["roof"]) == (None, {9: 0.5}, roof)
    found.units = ("FP32",)
    assert page_of(report())["why"] is found
    found.units, found.notes = (), ("why not",)
    assert page_of(report())["why"] is found


def test_a_kernel_lies_under_the_roof_of_the_units_that_multiply() -> None:
    peak = 132 * 128 * 2 * 1980 / 1e6
    roof = making._roof(report(), None)
    assert roof is not None and roof.name == "FP32 units"
    assert roof.tflops == pytest.approx(peak)
    tensor = making._roof(report(cores=Badge.TENSOR_CORES), None)
    assert tensor is not None and tensor.name == "tensor cores, one BF16 product"
    assert tensor.tflops == pytest.approx(peak * 2048 / 128)


def test_counted_products_say_which_roof_is_theirs() -> None:
    roofs = (
        Roof(name="FP32 units", tflops=900.0),
        Roof(name="tensor cores (2 products of BF16)", tflops=400.0),
    )
    explanation: Any = SimpleNamespace(roofs=roofs)
    assert making._roof(report(cores=Badge.TENSOR_CORES), explanation) == roofs[1]
    assert making._roof(report(cores=Badge.TENSOR_CORES), SimpleNamespace(roofs=roofs[:1])) == (  # type: ignore[arg-type]
        making._roof(report(cores=Badge.TENSOR_CORES), None)
    )


def changed_device(made: Report, **changes: Any) -> Report:
    assert made.device is not None
    return made.model_copy(update={"device": made.device.model_copy(update=changes)})


def test_without_a_gpu_or_a_kernel_there_is_no_roof() -> None:
    assert making._roof(report(score=None), None) is None
    assert making._roof(report().model_copy(update={"kernel": None}), None) is None
    old = changed_device(report(cores=Badge.TENSOR_CORES), arch="sm_75")
    assert making._roof(old, None) is None


def test_a_kernel_lies_between_two_intensities() -> None:
    points = making._roofline(report())
    assert points == [
        ("as the blocks ask for it", 0.44),
        ("every matrix moved once", pytest.approx(824_633_720_832 / 2 / (4 * 109_051_904))),
    ]
    uncounted = report().model_copy(update={"counters": None})
    assert [name for name, _ in making._roofline(uncounted)] == ["every matrix moved once"]
    assert making._roofline(report(score=None)) == []
    assert making._roofline(changed_device(report(), fp32_peak_tflops=None)) == []
    assert making._roofline(report().model_copy(update={"device": None})) == []


# ---------------------------------------------------------------------------------- templates


def test_every_text_that_a_template_prints_is_harmless() -> None:
    page = templates().from_string("{{ text }}|{{ number }}|{{ text | lines }}")
    printed = page.render(text="<b>\x1b[1m\n&", number=3)
    assert "<b>" not in printed and "\x1b" not in printed and "&lt;b&gt;" in printed
    assert "|3|" in printed
    assert making._lines("<i>\n\tx") == "&lt;i&gt;\n        x"
    with pytest.raises(Exception, match="nothing"):
        templates().from_string("{{ nothing }}").render()


def test_templates_write_numbers_as_every_view_does() -> None:
    page = templates().from_string(
        "{{ 0.5 | ratio }} {{ 8.1234 | milliseconds }} {{ 50.55 | tflops }} {{ 0.5 | percent }} "
        "{{ '2026-01-31T12:05:00' | minute }} {{ 1234 | grouped }} {{ interval(1, 2) }}\n"
        "  {% if true %}\nx\n  {% endif %}\n"
    )
    space = "\N{NO-BREAK SPACE}"
    assert page.render() == (
        f"0.500 8.123 50.5 50 % 2026-01-31 12:05 UTC 1{space}234 1.000 to 2.000\nx\n"
    )
    assert templates().globals["reasons"] is making.REASONS
    assert templates().globals["own_facts"] is making.provenance.own


def test_a_page_is_another_where_the_package_or_the_edition_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def version() -> str:
        making._template_version.cache_clear()
        return making._template_version()

    first = version()
    assert first == version() and re.fullmatch(r"[0-9a-f]{64}", first)
    monkeypatch.setattr(making.Edition, "current", lambda: Edition("another", 1))
    assert version() != first
    monkeypatch.undo()
    assert version() == first


@pytest.mark.parametrize("file", ["site.py", "templates/board.html"])
def test_a_page_is_another_where_a_file_of_the_package_is(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = Path(making.__file__).parent
    shutil.copytree(package, tmp_path / "package", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(making, "files", lambda name: tmp_path / "package")
    making._template_version.cache_clear()
    first = making._template_version()
    with (tmp_path / "package" / file).open("a") as changed:
        changed.write(" ")
    making._template_version.cache_clear()
    assert making._template_version() != first
    making._template_version.cache_clear()


# ------------------------------------------------------------------------------------- folder


def written(folder: Path, *reports: Report) -> tuple[Site, list[str | None]]:
    documents = {document.id: document for document in map(Document.of, reports)}
    entries = [Entry.of(document.report, id) for id, document in documents.items()]
    made = Site(folder, entries, NOW)
    made.write_boards()
    return made, [*made.write_entries(documents.__getitem__)]


def test_a_site_makes_its_folders_and_names_its_pages(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    made, said = written(folder, report("one"), report("two", gpu="NVIDIA L4"))
    assert said == [None, None]
    assert [(page.file, page.title) for page in made.pages] == [
        ("index.html", H100),
        ("nvidia-l4-1.html", "NVIDIA L4"),
        ("runs.html", "All runs"),
    ]
    assert (folder / ".matmul-arena-site").is_file()
    sheet = (folder / "assets" / "site.css").read_text(encoding="utf-8")
    assert ".listing code ." in sheet and (folder / "assets" / "plotly.min.js").is_file()


def test_a_submissions_page_has_its_report_and_its_source_beside_it(tmp_path: Path) -> None:
    made, _ = written(tmp_path / "site", report("one", source="// é\n"))
    (only,) = made.entries
    stem = tmp_path / "site" / "entries" / only.short_id
    assert Document.parse(stem.with_suffix(".json").read_text(encoding="utf-8"), "it").id == only.id
    assert stem.with_suffix(".cu").read_bytes() == "// é\n".encode()
    assert "one" in stem.with_suffix(".html").read_text(encoding="utf-8")


def test_a_page_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    document = Document.of(report())
    made = Site(tmp_path / "site", [Entry.of(document.report, document.id)], NOW)

    def broken(id: str) -> Document:
        raise ZeroDivisionError("a defect")

    why = f"{document.id[:16]}: ZeroDivisionError: a defect"
    assert [*made.write_entries(broken)] == [why]
    page = tmp_path / "site" / "entries" / f"{document.id[:16]}.html"
    assert "a defect" in page.read_text(encoding="utf-8")

    def full(id: str) -> Document:
        raise OSError("the disk is full")

    again = Site(tmp_path / "other", [Entry.of(document.report, document.id)], NOW)
    with pytest.raises(OSError, match="full"):
        list(again.write_entries(full))


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_pages_that_are_no_longer_wanted_go_with_what_lies_beside_them(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    made, _ = written(folder, report("one"), report("two"), report("three"))
    one, two, _ = (entry.short_id for entry in made.entries)
    (folder / "entries" / f"{two}.cu").unlink()
    written(folder, report("one"))
    assert names_in(folder / "entries") == [f"{one}.cu", f"{one}.html", f"{one}.json"]


def test_pages_that_are_there_are_written_again_only_where_they_would_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    assert written(folder, report("one"))[1] == [None]
    assert written(folder, report("one"))[1] == []
    monkeypatch.setattr(making, "_template_version", lambda: "another")
    assert written(folder, report("one"))[1] == [None]
    assert written(folder, report("one"))[1] == []


def test_the_runs_have_a_page_of_their_own_and_the_first_board_is_the_first_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "site"
    written(folder, report("one"), report("old", edition=Edition("0.0.1", NOW.cases)))
    assert {"index.html", "runs.html", "assets", "entries"} <= {*names_in(folder)}
    runs = (folder / "runs.html").read_text(encoding="utf-8")
    assert "ranked" in runs and "regrade" in runs
    asked: list[Any] = []

    def noted(entries: Any, boards: Any, edition: Edition) -> Any:
        asked.append((list(boards), edition))
        return runs_page(entries, asked[-1][0], edition)

    monkeypatch.setattr(making, "runs_page", noted)
    made, _ = written(folder, report("declared", launch=Badge.DECLARED_LAUNCH))
    assert asked == [([made.boards[H100][0]], NOW)] and asked[0][0][0].rows
    assert 'href="assets/site.css' in (folder / "index.html").read_text(encoding="utf-8")


def test_a_page_in_a_folder_leads_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "site"
    made, _ = written(folder, report("one"), report("two", gpu="NVIDIA L4"))
    for each in made.entries:
        text = (folder / "entries" / f"{each.short_id}.html").read_text(encoding="utf-8")
        assert 'href="../assets/site.css' in text
        assert "nvidia-l4-1.html" not in text  # the boards may be others when the page stays
    document = Document.of(report("two"))
    broken = Site(folder, [*made.entries, Entry.of(document.report, document.id)], NOW)

    def defective(id: str) -> Document:
        raise ZeroDivisionError

    list(broken.write_entries(defective))
    text = (folder / "entries" / f"{document.id[:16]}.html").read_text(encoding="utf-8")
    assert 'href="../assets/site.css' in text and "nvidia-l4-1.html" not in text


def test_a_site_of_some_runs_ranks_those_alone(tmp_path: Path) -> None:
    runs = [entry("a", "ada", 0.9), entry("b", "bob", 0.8)]
    made = Site(tmp_path, runs, NOW, Filter(author="bob"))
    (boards_of,) = made.boards.values()
    assert [row.entry.name for row in boards_of[0].rows] == ["b"]
    assert [each.name for each in made.entries] == ["b"]


def test_a_folder_of_something_else_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    said = f"{tmp_path} holds something other than a leaderboard's site; nothing was written"
    with pytest.raises(StoreError, match=re.escape(said)):
        Site(tmp_path, [], NOW)
    (tmp_path / "notes.txt").unlink()
    assert Site(tmp_path, [], NOW).pages[0].file == "index.html"
