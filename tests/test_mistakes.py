"""The commonest mistakes of beginners get the right verdict, a line, a cause and a cure."""

import io
import re
from pathlib import Path

import pytest

from harness.cli.views.console import SafeConsole
from harness.cli.views.grading import screen
from harness.judge.grade import GradingOptions, grade
from harness.judge.submission import read
from harness.judge.workers.session import Session
from tests.test_submissions import FEW_CASES

SLOW = [pytest.mark.architectures]
"""Rarer mistakes that take more than two seconds: nox -s architectures grades them."""

FILES = [
    pytest.param(path, id=path.stem, marks=SLOW if "// slow: yes" in path.read_text() else [])
    for path in sorted((Path(__file__).parent / "mistakes").glob("*.cu"))
]


@pytest.mark.parametrize("path", FILES)
def test_a_mistake_is_explained(path: Path, cpu_session: Session) -> None:
    text = path.read_text(encoding="utf-8")
    options = GradingOptions(quick=True, seed=1)
    report = grade(read(path), cpu_session, options, problem=FEW_CASES)
    expected = re.findall(r"^// expect: (\S+)$", text, re.MULTILINE)
    assert report.verdict.value in expected, report.outcome
    output = io.StringIO()
    SafeConsole(file=output, width=300).print(screen(report))
    shown = output.getvalue()
    words = re.findall(r"^// says: (.+)$", text, re.MULTILINE)
    assert words and "kernel.cu" not in shown
    for each in words:
        assert each in shown
