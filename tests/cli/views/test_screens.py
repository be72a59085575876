"""Screens of recorded gradings and explanations change only on purpose."""

import io
from collections.abc import Iterator
from pathlib import Path

from rich.console import RenderableType

from harness.cli.views import explanation, grading
from harness.cli.views.console import SafeConsole
from harness.judge.explain.explain import explain
from harness.protocol.report import Report
from tests.judge.explain.solutions import KERNELS, examined, recorded
from tests.sources import named_parts

SCREENS = Path(__file__).with_name("screens.txt")
"""What a person has read. To write it again: python3 -m tests.cli.views.test_screens. Of the second
report some facts are invented, so that the screen has all of its parts."""

EXPLAINED = ("divergent_loops", "spills", "indices_the_wrong_way_round", "mma_3xtf32")


def screens() -> Iterator[tuple[str, RenderableType]]:
    lines = SCREENS.with_name("reports.jsonl").read_text(encoding="utf-8").splitlines()
    reports = [Report.model_validate_json(line) for line in lines]
    yield from ((each.submission.name, grading.screen(each)) for each in reports)
    yield "all of them", grading.summary(reports)
    for name in EXPLAINED:
        source = (KERNELS / f"{name}.cu").read_text(encoding="utf-8")
        yield name, explanation.screen(explain(examined(recorded(name))), source)
        line = recorded(name).loop.first_line
        yield f"{name}: code", explanation.machine_code(recorded(name).facts.lines, line)


def texts() -> dict[str, str]:
    found = {}
    for name, screen in screens():
        output = io.StringIO()
        SafeConsole(file=output, width=100).print(screen)
        found[name] = "".join(f"{x.rstrip()}\n" for x in output.getvalue().splitlines())
    return found


def test_a_screen_changes_only_on_purpose() -> None:
    assert texts() == named_parts(SCREENS)


if __name__ == "__main__":
    parts = (f"// == {name}\n{text}" for name, text in texts().items())
    SCREENS.write_text("".join(parts), encoding="utf-8")
