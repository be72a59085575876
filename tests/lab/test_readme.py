"""Committed reports match their kernels, and the README shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.board.document import read_folder
from harness.cli.main import main
from harness.protocol.report import Report
from lab import commands, readme
from tests.board import factory


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two kernels with their reports, and a README with markers."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports" / "README.md").write_text(
        f"# Title\n\n{readme.BEGIN}\n{readme.END}\n\nend\n"
    )
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
    return readme.mismatches(read_folder(repository / "reports"), repository / "solutions")


def test_comments_may_change_and_code_may_not(repository: Path) -> None:
    assert problems(repository) == []
    kernel = repository / "solutions" / "tile.cu"
    before = kernel.read_text()
    kernel.write_text(f"// 0.9 of cuBLAS\n{before}/* more */")
    assert problems(repository) == []
    for changed in (f"{before}__device__ int one_more;\n", f"// solve: tile=32x32\n{before}"):
        kernel.write_text(changed)
        (problem,) = problems(repository)
        assert "tile.cu has changed since; grade it again" in problem
    kernel.unlink()
    (problem,) = problems(repository)
    assert "there is no" in problem


MISMATCHES: dict[str, tuple[Report, str | None, str]] = {
    "another name": (factory.report("tile"), "best", "is the report of tile, not of best"),
    "another GPU": (factory.report("tile", gpu="NVIDIA L4"), None, "L4, which is not h100"),
    "no score": (factory.report("tile", score=None), None, "no complete accepted run"),
    "quick": (factory.report("tile", quick=True), None, "no complete accepted run"),
    "rejected": (factory.rejected("tile"), None, "no complete accepted run"),
}


@pytest.mark.parametrize(("report", "name", "said"), MISMATCHES.values(), ids=MISMATCHES.keys())
def test_a_mismatch_is_named(repository: Path, report: Report, name: str | None, said: str) -> None:
    commit(repository, report, name)
    assert said in problems(repository)[-1]


def written(repository: Path) -> int:
    return main(["readme", "--reports", str(repository / "reports")], commands)


def test_the_readme_gets_the_table(repository: Path) -> None:
    assert written(repository) == 0
    text = (repository / "reports" / "README.md").read_text()
    assert text.startswith("# Title\n\n<!-- board -->\n")
    assert text.endswith("<!-- /board -->\n\nend\n")
    assert "| [wide \\| tile](../solutions/wide%20|%20tile.cu) | [**1.031**](" in text
    assert (
        "| [tile](../solutions/tile.cu) | [**0.900**](h100/tile.json) | 0.898 to 0.902 | 2 "
        "| 8.000 | 77 % | cuda |"
    ) in text
    columns = [
        line.count("|") - line.count("\\|") - 1 for line in text.splitlines() if "---" in line
    ]
    assert columns and max(columns) <= 7
    assert "driver 580.95.05, CUDA 13.0, cuBLAS 13.0.2" in text
    assert "bar [0.900, 1.031]" in text
    again = text
    assert written(repository) == 0
    assert (repository / "reports" / "README.md").read_text() == again


def test_mismatches_do_not_reach_the_readme(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = (repository / "reports" / "README.md").read_text()
    (repository / "solutions" / "tile.cu").write_text("changed")
    assert written(repository) == 2
    assert "has changed since" in capsys.readouterr().err
    assert (repository / "reports" / "README.md").read_text() == before
