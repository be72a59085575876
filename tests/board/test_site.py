"""Tests of the site's files: complete, escaped, written once, and never over other files."""

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

import pytest

from harness.board.document import Document
from harness.board.entry import Entry, Version
from harness.board.ranking import EVERYTHING, Board, Filter
from harness.board.site import MARKER, Site, pages_of
from harness.board.sqlite_file import FileStore
from harness.protocol import report as protocol
from harness.protocol.errors import StoreError
from harness.protocol.report import Report
from problem.cases import Shape
from problem.grades import Errors
from tests.board import factory
from tests.board.conftest import Call, Enter
from tests.judge.explain.solutions import SOLUTIONS, recorded

NOW = Version.current()
BEFORE = Version("0.0.1", NOW.cases)
Write = Callable[..., Path]
PageOf = Callable[[Report], Path]


@pytest.fixture
def write(tmp_path: Path, stored: Enter) -> Write:
    """A function that enters reports, writes their site and returns its folder."""

    def site(*reports: Report, chosen: Filter = EVERYTHING) -> Path:
        folder = tmp_path / "site"
        with FileStore(stored(*reports)) as store:
            made = Site(folder, store.entries(), chosen)
            made.write_boards()
            for _ in made.write_entries(store.document):
                pass
        return folder

    return site


@pytest.fixture
def page_of(write: Write) -> PageOf:
    """A function that writes the site of one report and returns the report's page."""

    def page(report: Report) -> Path:
        (found,) = (write(report) / "entries").glob("*.html")
        return found

    return page


class Elements(HTMLParser):
    """Every element with its attributes, and the text outside of scripts."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def links(self) -> list[str]:
        return [
            value
            for _, attributes in self.found
            for name, value in attributes.items()
            if name in ("href", "src") and value and not value.startswith("data:")
        ]


def pages(site: Path) -> list[Path]:
    return sorted(site.rglob("*.html"))


def of_everything() -> list[Report]:
    return [
        factory.report("tile", "ada", 0.9),
        factory.report("split", "bob", 1.6, cores=protocol.Badge.TENSOR_CORES),
        factory.report("old", "eve", 1.2, version=BEFORE),
        factory.report("elsewhere", "ada", 0.7, gpu="NVIDIA L4"),
        factory.report("laptop", "ada", score=None),
        factory.report("hasty", "ada", 0.9, quick=True),
        factory.rejected(),
        factory.wrong(),
        factory.uncompilable(),
    ]


def test_every_link_leads_to_a_file(write: Write) -> None:
    site = write(*of_everything())
    assert len(pages(site)) == 3 + len(of_everything())
    for page in pages(site):
        assert page.read_text().count('aria-current="page"') == (page.parent == site)
        for link in Elements(page).links():
            file, _, fragment = link.partition("#")
            target = (page.parent / file) if file else page
            assert target.is_file(), f"{page.name} links to {link}"
            if fragment:
                assert f'id="{fragment}"' in target.read_text(encoding="utf-8")


def test_each_gpu_has_a_board_and_every_run_a_page(write: Write) -> None:
    site = write(*of_everything())
    board = Elements(site / "index.html").text
    assert factory.H100 in board
    assert "graded by another version of the judge" in board
    other = Elements(site / "nvidia-l4-1.html").text
    assert "elsewhere" in other
    assert "split" not in other
    runs = Elements(site / "runs.html").text
    results = "other version", "unscored", "quick"
    results = (*(f"accepted, {why}" for why in results), "memory-error", "wrong-answer")
    assert all(result in runs for result in results)


@pytest.mark.parametrize(
    ("drawn", "shown"),
    [
        (protocol.BlockMap(rows=("...", "...", "###")), ">...\n...\n###</pre>"),
        (protocol.BlockMap(rows=("#.",), scale=2), "stands for 2×2 blocks"),
    ],
)
def test_the_map_of_wrong_blocks_is_shown(
    drawn: protocol.BlockMap, shown: str, page_of: PageOf
) -> None:
    wrong = factory.wrong()
    found = wrong.outcome.counterexample.model_copy(update={"map": drawn})
    outcome = wrong.outcome.model_copy(update={"counterexample": found})
    page = page_of(wrong.model_copy(update={"outcome": outcome}))
    assert shown in page.read_text(encoding="utf-8")


def test_unverified_results_are_below_the_ranking(write: Write, path: Path) -> None:
    with FileStore(path, create=True) as store:
        store.enter_documents([Document.of(factory.report("claimed", "bob", 1.3))])
    board = Elements(write(factory.report("tile", "ada", 0.9)) / "index.html").text
    above, _, below = board.partition("Unverified results")
    assert "tile" in above and "claimed" not in above and "claimed" in below


def test_a_submissions_page_shows_its_lines(page_of: PageOf) -> None:
    page = page_of(factory.rejected())
    text = page.read_text(encoding="utf-8")
    (line,) = re.findall(r'<tr id="L9" class="(\w+)">', text)
    assert line == "error"
    shown = " ".join(Elements(page).text.split())
    assert "memcheck: reads B[17][0], 4 bytes past the end of B" in shown
    assert "global memory: 4\xa0096 requests, 2.2 sectors each" in shown.replace(" 096", "\xa0096")
    assert 'variable "unused" is not used' in shown


def test_a_submissions_page_is_written_once_for_each_version(write: Write) -> None:
    reports = [factory.report(author="ada"), factory.report(author="bob")]
    site = write(reports[0])
    (page,) = (site / "entries").glob("*.html")
    page.write_text("as it was")
    write(*reports)
    assert page.read_text() == "as it was"
    assert len(list((site / "entries").glob("*.html"))) == 2
    (site / MARKER).write_text("of other templates")
    write(*reports)
    assert page.read_text() != "as it was"


def test_pages_of_removed_entries_are_deleted(write: Write) -> None:
    tensor = factory.report(author="bob", cores=protocol.Badge.TENSOR_CORES)
    site = write(factory.report(author="ada"), tensor)
    write(chosen=Filter(badges=frozenset({protocol.Badge.TENSOR_CORES})))
    assert len(list((site / "entries").iterdir())) == 3
    assert "ada" not in Elements(site / "index.html").text


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match="something other than a leaderboard's site"):
        Site(tmp_path, [])
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_store_without_a_ranked_run_has_a_first_page(write: Write) -> None:
    site = write(factory.report(score=None))
    assert "Nothing is ranked yet" in Elements(site / "index.html").text


def test_the_command_writes_the_site(call: Call, stored: Enter, tmp_path: Path) -> None:
    stored(*of_everything())
    site = tmp_path / "site"
    code, out, err = call("leaderboard", "--site", site, "--json", "-")
    assert code == 0
    assert out.startswith("[")
    assert f"submissions: {len(of_everything())}" in err
    assert (site / "index.html").is_file()


@pytest.mark.parametrize(
    "source",
    [
        *("\n" * 60_000, " \n" * 500_000, "\t" * 100_000 + "x\n", "a " * 500_000),
        *("/*" * 300_000, "#if 0\n" * 100_000, '"' * 1_000_000, "(" * 1_000_000, "x" * 1_000_000),
    ],
    ids=lambda source: repr(source[:6]),
)
def test_any_source_has_its_page_in_time(source: str, tmp_path: Path) -> None:
    text = factory.SOURCE + source
    document = Document.of(factory.report(source=text, outcome=factory.wrong().outcome))
    entry = Entry.of(document.report, document.id)
    site = Site(tmp_path / "site", [entry])
    assert list(site.write_entries(lambda _: document)) == [None]
    page = tmp_path / "site" / "entries" / f"{entry.short_id}.html"
    assert page.stat().st_size < 3_000_000
    assert page.with_suffix(".cu").read_text() == text


def test_a_page_that_fails_leaves_the_others_whole(tmp_path: Path) -> None:
    documents = {d.id: d for d in map(Document.of, (factory.report(), factory.rejected()))}
    broken, whole = documents

    def document(id: str) -> Document:
        if id == broken:
            raise ValueError("a report that nobody thought of\x1b[2J")
        return documents[id]

    folder = tmp_path / "site"
    site = Site(folder, [Entry.of(each.report, id) for id, each in documents.items()])
    site.write_boards()
    (failed,) = filter(None, site.write_entries(document))
    assert failed.startswith(f"{broken[:16]}: ValueError: a report that nobody")
    assert "could not be written" in (folder / f"entries/{broken[:16]}.html").read_text()
    assert "matrix_mult" in (folder / f"entries/{whole[:16]}.html").read_text()

    def full(id: str) -> Document:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        list(Site(tmp_path / "other", site.entries).write_entries(full))


ACCURACY = protocol.Accuracy(
    grade="B",
    sizes=(
        protocol.AccuracyAt(
            shape=Shape(256, 256, 256),
            baseline="cuBLAS",
            grade="B",
            results=(
                protocol.InputsAccuracy(
                    inputs="one outlier",
                    grade="B",
                    kernel=Errors(block=2e-6, by_rows=1e-7, by_components=3e-3),
                    baseline=Errors(block=1e-6, by_rows=2e-7, by_components=4e-7),
                ),
            ),
        ),
    ),
)


def test_pages_show_accuracy_where_it_is_known(write: Write) -> None:
    graded = factory.report("a").model_copy(update={"accuracy": ACCURACY})
    site = write(graded, factory.report("b", gpu="NVIDIA L4"))
    board, other = (site / name for name in ("index.html", "nvidia-l4-1.html"))
    assert 'data-accuracy="B"' in board.read_text() and "Accuracy" in Elements(board).text
    assert 'class="accuracy"' not in other.read_text()
    (page,) = (page for page in pages(site) if "one outlier" in page.read_text())
    shown = " ".join(Elements(page).text.split())
    assert "Grade B on structured inputs" in shown and "256×256×256, grade B" in shown
    assert all(figure in shown for figure in ("2.0e-06", "3.0e-03", "4.0e-07"))


def test_boards_have_files_named_after_their_gpus() -> None:
    gpus = ["NVIDIA H100 80GB HBM3", "NVIDIA L4", "-Tesla (TM) V100-", "日本"]
    names = ["index.html", "nvidia-l4-1.html", "tesla-tm-v100-2.html", "gpu-3.html"]
    boards = [Board(gpu, Version.current()) for gpu in gpus]
    assert [page.file for page in pages_of(boards)] == names


@pytest.mark.parametrize("without_device", [False, True])
def test_a_report_shows_its_scores_over_sizes(without_device: bool, page_of: PageOf) -> None:
    report = factory.wrong() if without_device else factory.report("tile")
    measured = factory.report()
    size = protocol.SizeScore(shape=Shape(1024, 1024, 1024), score=measured.score)
    changed: dict[str, object] = {
        "measurement": measured.measurement.model_copy(update={"sizes": (size,)})
    }
    changed |= {"device": None} if without_device else {}
    page = page_of(report.model_copy(update=changed))
    assert str(size.shape) in Elements(page).text


def explained(name: str) -> Report:
    """Return the report of a solution with its recorded counters, at 8 ms."""
    evidence = recorded(name)
    source = (SOLUTIONS / f"{name}.cu").read_text(encoding="utf-8")
    return factory.report(name, source=source).model_copy(
        update={"kernel": evidence.facts, "counters": evidence.counters}
    )


def test_a_page_explains_the_speed_and_marks_lines(page_of: PageOf) -> None:
    shown = Elements(page_of(explained("30_mma_tf32x3")))
    assert "What limits the speed" in shown.text
    assert "The products go through mma.sync, warp by warp" in shown.text
    cells = [attributes for _, attributes in shown.found if attributes.get("class") == "heat"]
    heat = {attributes["style"] for attributes in cells}
    assert len(heat) > 3 and "--heat: 0%" in heat
    bars = [attributes for _, attributes in shown.found if attributes.get("class") == "number busy"]
    assert bars[0]["style"] == "--share: 100%"
    assert all(float(bars[0]["data-value"] or 0) >= float(x["data-value"] or 0) for x in bars)
    assert "192 HMMA.1688.F32.TF32" in shown.text  # of the line that multiplies


def test_a_page_shows_the_machine_code_of_a_line(page_of: PageOf) -> None:
    report = explained("30_mma_tf32x3")
    code = protocol.CodeLine(
        line=1, opcodes={"FFMA": 20}, instructions=("FFMA R1, R2, R3, R1", "FFMA <b>")
    )
    kernel = report.kernel.model_copy(update={"lines": (code,)})
    text = page_of(report.model_copy(update={"kernel": kernel})).read_text(encoding="utf-8")
    assert "20 FFMA<pre>FFMA R1, R2, R3, R1\nFFMA &lt;b&gt;\n…</pre>" in text


def test_a_page_says_why_it_has_no_advice(page_of: PageOf) -> None:
    text = Elements(page_of(explained("09_vector_loads"))).text
    assert "What limits the speed" in text
    assert "do not hold at 8192×6144×4096" in text
    assert "wavefronts per request" not in text and "a remedy" not in text
