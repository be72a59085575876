"""The commands of the board."""

import json
import os
from pathlib import Path

import pytest
from rich.cells import cell_len

from harness.board.document import Document
from harness.board.entry import Version
from harness.board.sqlite_file import FileStore
from harness.cli.commands import _arguments
from harness.cli.commands.leaderboard import REPORTS
from harness.protocol.report import Badge
from tests.board import factory
from tests.board.conftest import Call, Enter

BEFORE = Version("0.0.1", Version.current().cases)


def test_the_terminal_shows_the_ranking(call: Call, stored: Enter) -> None:
    stored(
        factory.report("tile", "ada", 0.9),
        factory.report("wide", "bob", 1.031),
        factory.report("late", "eve", 1.2, version=BEFORE),
        factory.report("laptop", "ada", score=None),
        factory.rejected(),
    )
    code, out, _ = call("leaderboard")
    assert code == 0
    assert out.index("wide") < out.index("tile") < out.index("late")
    for said in (factory.H100, "1.031", "1.029 to 1.033", "1755 MHz", "580.95.05", "regrade"):
        assert said in out
    assert "1 not ranked: accepted without a score" in out
    assert "laptop" not in out


def test_a_narrow_terminal_keeps_rank_and_score(
    call: Call, stored: Enter, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored(factory.report("🚀" * 30 + "<b>'; DROP TABLE entries;--", "ada", 0.912))
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = call("leaderboard")
    assert "0.912" in out
    assert max(map(cell_len, out.splitlines())) <= 80


def test_filters_choose_and_json_has_all(call: Call, stored: Enter) -> None:
    stored(
        factory.report("tensor", "ada", 1.4, cores=Badge.TENSOR_CORES),
        factory.report("tile", "bob", 0.9, day=3),
    )
    _, out, _ = call("leaderboard", "--json", "-", "--badge", "cuda-cores")
    ((board,),) = (json.loads(out),)
    assert board["gpu"] == factory.H100
    (row,) = board["rows"]
    assert (row["rank"], row["status"], row["name"], row["score"]) == (1, "ranked", "tile", 0.9)
    _, out, _ = call("leaderboard", "--json", "-", "--gpu", "L4")
    assert json.loads(out) == []


def test_nothing_to_rank_gives_exit_code_1(call: Call, stored: Enter) -> None:
    stored(factory.report(score=None))
    code, out, _ = call("leaderboard")
    assert code == 1
    assert "nothing to rank" in out


def test_a_missing_store_is_one_sentence(call: Call, path: Path) -> None:
    code, out, err = call("leaderboard")
    assert (code, out) == (2, "")
    assert err.startswith(f"leaderboard: there is no store at {path}")
    assert err.count("\n") == 1


def test_bundled_reports_are_shown_until_there_is_a_score(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(_arguments.STORE_VARIABLE)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    code, out, err = call("leaderboard")
    assert code == 0
    assert "36_wgmma_one_accumulator" in out and "01_naive" in out
    assert "grade my_kernel.cu --submit --author NAME" in err
    assert max(map(cell_len, out.splitlines())) <= 80
    gpus = [folder for folder in REPORTS.iterdir() if folder.is_dir()]
    assert " ".join(out.split()).count("CUDA 13.2") == len(gpus), "once, below each table"
    assert list(tmp_path.iterdir()) == []
    with FileStore(tmp_path / "leaderboard.sqlite", create=True) as store:
        store.enter(factory.report("laptop", score=None))
    code, out, err = call("leaderboard")
    assert "01_naive" in out and "Entered here, 1 not ranked: accepted without a score" in err
    with FileStore(tmp_path / "leaderboard.sqlite") as store:
        store.enter(factory.report("mine", score=0.5))
    code, out, err = call("leaderboard")
    assert "mine" in out and "01_naive" not in out and err == ""


def test_a_folder_that_cannot_be_used_is_one_sentence(
    call: Call, stored: Enter, tmp_path: Path
) -> None:
    stored(factory.report())
    (tmp_path / "file").write_text("")
    code, _, err = call("leaderboard", "--site", tmp_path / "file" / "site")
    assert code == 2
    file = tmp_path / "file"
    assert err == f"leaderboard: --site {file / 'site'}: {file} is not a folder.\n"
    code, _, err = call("leaderboard", "--reports", file)
    assert (code, err) == (2, f"leaderboard: --reports: there is no folder {file}.\n")


def test_the_source_of_the_best_verified_run_is_exported(call: Call, stored: Enter) -> None:
    report = factory.report("naïve 🚀", "ada", 1.5)
    path = stored(report, factory.report("naïve 🚀", "ada", 1.0, source="// slower", day=1))
    with FileStore(path) as store:
        store.enter_documents([Document.of(factory.report("naïve 🚀", "ada", 9.0, source="// x"))])
    assert call("export", "--source", "ada/naïve 🚀")[1] == report.submission.source


GOOD = Document.of(factory.report()).text.encode()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"SQLite\xff", "is not UTF-8 text"),
        (b"\n", "is empty"),
        (GOOD + b"\n" + GOOD[: len(GOOD) // 2], "some.jsonl, line 2, is not a report"),
    ],
)
def test_import_is_all_or_nothing_and_says_why(
    content: bytes | None, said: str, call: Call, stored: Enter, path: Path
) -> None:
    stored()
    file = path.with_name("some.jsonl")
    if content is not None:
        file.write_bytes(content)
    code, _, err = call("import", file)
    assert (code, err.count("\n")) == (2, 1) and file.name in err and said in err
    with FileStore(path) as store:
        assert store.entries() == []


def test_a_wrong_file_makes_no_store(call: Call, path: Path) -> None:
    assert call("import", __file__)[0] == 2
    assert not path.exists()


def test_what_a_shell_substitutes_is_imported(call: Call, stored: Enter) -> None:
    stored()
    reading, writing = os.pipe()
    os.write(writing, GOOD)
    os.close(writing)
    assert call("import", f"/dev/fd/{reading}")[0] == 0
    os.close(reading)
