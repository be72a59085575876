"""A committed report belongs to the kernel that it names, and the README says what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.board import committed, readme
from harness.board.version import Version
from harness.protocol.report import Report, SizeScore, Unscored
from problem.cases import Shape
from tests.board import factory
from tests.board.conftest import Call


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two kernels with their reports, and a README with markers."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "README.md").write_text(f"# Title\n\n{readme.BEGIN}\n{readme.END}\n\nend\n")
    commit(tmp_path, factory.report("tile", "ada", 0.9))
    commit(tmp_path, factory.report("wide | tile", "ada", 1.031))
    return tmp_path


def commit(repository: Path, report: Report, name: str | None = None) -> Path:
    name = name or report.submission.name
    kernel = repository / "solutions" / f"{name}.cu"
    kernel.write_bytes(report.submission.source.encode())
    path = repository / "reports" / "h100" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(report.model_dump_json(indent=2), encoding="utf-8")
    return path


def problems(repository: Path) -> list[str]:
    return committed.mismatches(committed.read(repository / "reports"), repository / "solutions")


def test_what_belongs_together_passes(repository: Path) -> None:
    assert len(committed.read(repository / "reports")) == 2
    assert problems(repository) == []


def test_a_changed_kernel_cannot_keep_its_score(repository: Path) -> None:
    kernel = repository / "solutions" / "tile.cu"
    before = kernel.read_bytes()
    kernel.write_bytes(b"// 0.9 of cuBLAS\n" + before)
    assert problems(repository) == []
    kernel.write_bytes(before + b"__device__ int one_more;\n")
    (problem,) = problems(repository)
    assert "tile.cu has changed since; grade it again" in problem


def test_a_kernel_that_is_gone_is_named(repository: Path) -> None:
    (repository / "solutions" / "tile.cu").unlink()
    (problem,) = problems(repository)
    assert "there is no" in problem


def test_a_report_under_another_name_is_named(repository: Path) -> None:
    commit(repository, factory.report("tile", "ada", 0.9), name="best")
    (problem,) = problems(repository)
    assert "is the report of tile, not of best" in problem


def test_a_report_in_another_gpus_folder_is_named(repository: Path) -> None:
    commit(repository, factory.report("tile", "ada", 0.9, gpu="NVIDIA L4"))
    (problem,) = problems(repository)
    assert "was graded on NVIDIA L4, which is not h100" in problem


@pytest.mark.parametrize(
    "report",
    [
        factory.report("tile", score=None),
        factory.report("tile", quick=True),
        factory.rejected("tile"),
    ],
)
def test_only_complete_scored_runs_are_committed(repository: Path, report: Report) -> None:
    commit(repository, report)
    assert "no complete accepted run on a GPU" in problems(repository)[-1]


def test_an_edited_source_does_not_match(repository: Path) -> None:
    path = repository / "reports" / "h100" / "tile.json"
    path.write_text(path.read_text().replace("float sum", "float some"))
    (problem,) = problems(repository)
    assert "tile.cu has changed since" in problem


def written(call: Call, repository: Path) -> tuple[int, str]:
    code, _, err = call(
        "leaderboard",
        *("--reports", repository / "reports"),
        *("--solutions", repository / "solutions"),
        *("--readme", repository / "README.md"),
    )
    return code, err


def test_the_readme_gets_the_table(call: Call, repository: Path) -> None:
    assert written(call, repository) == (0, "")
    text = (repository / "README.md").read_text()
    assert text.startswith("# Title\n\n<!-- board -->\n")
    assert text.endswith("<!-- /board -->\n\nend\n")
    assert "| [wide \\| tile](solutions/wide%20|%20tile.cu) | [**1.031**](" in text
    assert (
        "| [tile](solutions/tile.cu) | [**0.900**](reports/h100/tile.json) | 0.898 to 0.902 | 2 "
        "| 8.000 | 77 % | cuda |"
    ) in text
    columns = [
        line.count("|") - line.count("\\|") - 1 for line in text.splitlines() if "---" in line
    ]
    assert columns and max(columns) <= 7
    assert "driver 580.95.05, CUDA 13.0, cuBLAS 13.0.2" in text
    assert "bar [0.900, 1.031]" in text
    again = text
    assert written(call, repository) == (0, "")
    assert (repository / "README.md").read_text() == again


def test_the_readme_shows_other_sizes_where_they_were_scored(call: Call, repository: Path) -> None:
    report = factory.report("tile", "ada", 0.9)
    assert report.measurement is not None and report.score is not None
    sizes = (
        SizeScore(shape=Shape(64, 8, 4), score=report.score),
        SizeScore(shape=Shape(5, 6, 7), score=Unscored(reason="throttled", message="")),
    )
    measurement = report.measurement.model_copy(update={"sizes": sizes})
    commit(repository, report.model_copy(update={"measurement": measurement}))
    assert written(call, repository) == (0, "")
    text = (repository / "README.md").read_text()
    assert "| size | tile |\n|---|---:|\n| 64×8×4 | 0.900 |\n| 5×6×7 | – |" in text


def test_the_readme_says_regrade_of_another_edition(call: Call, repository: Path) -> None:
    old = Version("0.0.1", Version.current().cases)
    commit(repository, factory.report("tile", "ada", 0.9, version=old))
    assert written(call, repository)[0] == 0
    assert "| other version |" in (repository / "README.md").read_text()


def test_the_readme_is_not_written_from_reports_that_do_not_fit(
    call: Call, repository: Path
) -> None:
    before = (repository / "README.md").read_text()
    (repository / "solutions" / "tile.cu").write_text("changed")
    code, err = written(call, repository)
    assert code == 2
    assert "has changed since" in err
    assert (repository / "README.md").read_text() == before


def test_a_readme_without_markers_is_left_alone(call: Call, repository: Path) -> None:
    (repository / "README.md").write_text("# Title\n")
    code, err = written(call, repository)
    assert code == 2
    assert "needs one <!-- board -->" in err
    assert (repository / "README.md").read_text() == "# Title\n"


def test_the_site_can_be_made_from_committed_reports(call: Call, repository: Path) -> None:
    site = repository / "site"
    code, *_ = call("leaderboard", "--reports", repository / "reports", "--site", site)
    assert code == 0
    assert len(list((site / "entries").glob("*.html"))) == 2


def test_a_folder_is_named_after_its_gpu_word_by_word(repository: Path) -> None:
    (repository / "reports" / "h100").rename(repository / "reports" / "nvidia-H100-80gb")
    assert problems(repository) == []
    path = commit(repository, factory.uncompilable("typo").model_copy(update={"device": None}))
    found = committed.mismatches(committed.read(repository / "reports"), repository / "solutions")
    assert found == [
        f"{path}: was graded on none, which is not h100.",
        f"{path}: is no complete accepted run on a GPU; grade the kernel again.",
    ]
