"""The page of how long gradings take says what each took, and which were begun how."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.protocol.report import Report
from lab import grading_times

REPORT = Report.model_validate_json(
    (Path(__file__).parent.parent.parent / "reports/h100/16_register_banks.json").read_bytes()
)


def test_the_page_has_a_row_for_each_grading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, tuple[str, ...]]] = []

    def graded(file: Path, cache: Path, *more: str) -> tuple[float, Report]:
        asked.append((cache.name, more))
        return 6.54, REPORT

    monkeypatch.setattr(grading_times, "graded", graded)
    page = tmp_path / "page.md"
    grading_times.main([str(page), "--quick", "2", "--full", "1"])
    quick = ("--quick",)
    assert asked == [("0", quick), ("1", quick), ("0", quick), ("0", quick), ("0", ())]
    rows = [line for line in page.read_text().splitlines() if " | 6.5 | " in line]
    assert [line.split(" | ")[0] for line in rows] == [
        *["| quick, empty cache"] * 2,
        *["| quick"] * 2,
        "| full",
    ]
    measured = next(each.seconds for each in REPORT.stages if each.stage == "measure")
    assert all(line.endswith(f"| {measured:.1f} |") for line in rows)
    assert "NVIDIA H100" in page.read_text() and "17_split_tail.cu" in page.read_text()
