"""The README's board and the comments of the kernels say what the committed reports say."""

from __future__ import annotations

import re
from pathlib import Path

from harness.board import committed
from harness.protocol.report import Report, Score
from lab import readme

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS, SOLUTIONS, README = ROOT / "reports", ROOT / "solutions", ROOT / "reports" / "README.md"


def test_the_committed_reports_match_kernels_and_page() -> None:
    reports = committed.read(REPORTS)
    shown = readme.section(README.read_text(encoding="utf-8"))
    assert reports
    assert readme.mismatches(reports, SOLUTIONS) == []
    assert shown == readme.markdown(reports, SOLUTIONS, README), (
        "the README is out of step; run: python3 -m lab readme"
    )


def score_of(kernel: Path) -> Score | None:
    """Return the score of the committed report; None if there is no report."""
    path = REPORTS / "h100" / f"{kernel.stem}.json"
    if not path.is_file():
        return None
    return Report.model_validate_json(path.read_text(encoding="utf-8")).score


def sizes_in(text: str) -> set[tuple[str, str]]:
    """Scores at other sizes that a kernel's first comment quotes from the judge."""
    quoted = text.partition("In the judge, on an H100: ")[2].partition(" has the rest")[0]
    return set(re.findall(r"(\d\.\d{3}) at (\d+x\d+x\d+)", quoted))


def sizes_of(kernel: Path) -> set[tuple[str, str]]:
    report = Report.model_validate_json((REPORTS / "h100" / f"{kernel.stem}.json").read_text())
    assert report.measurement is not None
    return {
        (f"{each.score.ratio:.3f}", f"{each.shape.M}x{each.shape.N}x{each.shape.K}")
        for each in report.measurement.sizes
        if each.score is not None
    }


def test_a_kernel_says_how_many_registers_it_has_and_spills() -> None:
    for kernel in sorted(SOLUTIONS.glob("*.cu")):
        text = kernel.read_text(encoding="utf-8").replace("\n//", "")
        report = Report.model_validate_json((REPORTS / "h100" / f"{kernel.stem}.json").read_text())
        assert report.kernel is not None
        resources = report.kernel.resources
        for said in re.findall(r"Registers: (\d+)", text) + re.findall(
            r"(\d+) registers, \d+ B", text
        ):
            assert int(said) == resources.registers, kernel
        spilled = re.search(r"(\d+) bytes spilled", text)
        assert int(spilled[1] if spilled else 0) == resources.spill_store_bytes, kernel


def test_a_kernel_quotes_its_own_report() -> None:
    for kernel in sorted(SOLUTIONS.glob("*.cu")):
        text = kernel.read_text(encoding="utf-8").replace("\n//", "")
        quoted = re.search(
            r"In the judge, on an H100: (\S+) x cuBLAS \(95 %: (\S+) to (\S+)\), (\S+) ms", text
        )
        score = score_of(kernel)
        assert (quoted is not None) == (score is not None), kernel
        if quoted is not None and score is not None:
            found = (score.ratio, score.low, score.high, score.kernel_ms)
            assert quoted.groups() == tuple(f"{value:.3f}" for value in found), kernel
            assert sizes_in(text) <= sizes_of(kernel), kernel
        gain = re.search(r" ms, (\S+) x the speed of (\d\d);", text)
        if gain is not None and score is not None:
            (before,) = SOLUTIONS.glob(f"{gain[2]}_*.cu")
            other = score_of(before)
            assert other is not None
            assert gain[1] == f"{other.kernel_ms / score.kernel_ms:.2f}", kernel
