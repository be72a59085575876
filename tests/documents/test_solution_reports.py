"""The READMEs' tables and the comments of the kernels agree with the committed reports."""

import re
from pathlib import Path

from harness.board.document import read_folder
from harness.protocol.report import Report
from lab.commands import readme

ROOT = Path(__file__).resolve().parent.parent.parent
REPORTS, SOLUTIONS, README = ROOT / "reports", ROOT / "solutions", ROOT / "reports" / "README.md"


def test_the_committed_reports_match_kernels_and_page() -> None:
    reports = read_folder(REPORTS)
    shown = readme.section(README.read_text(encoding="utf-8"), readme.BOARD)
    assert reports
    assert readme.mismatches(reports, SOLUTIONS) == []
    assert shown == readme.markdown(reports, SOLUTIONS, README), (
        "the README is out of step; run: python3 -m lab readme"
    )


def test_the_choice_of_kernels_is_that_of_the_reports() -> None:
    page = SOLUTIONS / "README.md"
    shown = readme.section(page.read_text(encoding="utf-8"), readme.CHOICE)
    assert shown == readme.fastest(read_folder(REPORTS), SOLUTIONS, page), (
        "the README is out of step; run: python3 -m lab readme"
    )


def report_of(kernel: Path) -> Report:
    """Return the committed report, from whichever GPU."""
    (path,) = REPORTS.glob(f"*/{kernel.stem}.json")
    return Report.model_validate_json(path.read_text(encoding="utf-8"))


def test_a_kernel_says_how_many_registers_it_has_and_spills() -> None:
    for kernel in sorted(SOLUTIONS.glob("*.cu")):
        text = kernel.read_text(encoding="utf-8").replace("\n//", "")
        known = report_of(kernel).kernel
        resources = known.resources
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
            r"In the judge, on an (H\d00): (\S+) x cuBLAS \(95 %: (\S+) to (\S+)\), (\S+) ms", text
        )
        report, score = report_of(kernel), report_of(kernel).score
        assert quoted is not None and report.device is not None, kernel
        found = (score.ratio, score.low, score.high, score.kernel_ms)
        assert quoted.groups()[1:] == tuple(f"{value:.3f}" for value in found), kernel
        assert quoted[1] in report.device.name, kernel
        assert f"reports/{quoted[1].lower()}/{kernel.stem}.json" in text, kernel
        gain = re.search(r" ms, (\S+) x the speed of (\d\d);", text)
        if gain is not None:
            (before,) = SOLUTIONS.glob(f"{gain[2]}_*.cu")
            assert gain[1] == f"{score.ratio / report_of(before).score.ratio:.2f}", kernel
            assert quoted[1] in str(report_of(before).device), kernel
