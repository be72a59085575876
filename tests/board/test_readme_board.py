"""The board in a README, to the letter: what it says, and in what it says it."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from harness.board import readme
from harness.board.committed import Committed
from harness.board.document import Document, StoreError
from harness.board.edition import Edition
from harness.protocol.report import Badge, Report, SizeScore, Unscored
from problem.cases import Shape
from tests.board.factory import report

NOW = Edition.current()


def committed(made: Report) -> Committed:
    path = Path("here", "reports", f"{made.submission.name}.json")
    return Committed(path, Document.of(made))


def markdown(*reports: Report) -> str:
    found = [committed(made) for made in reports]
    return readme.markdown(found, Path("here", "solutions"), Path("here", "README.md"))


def test_a_board_is_a_table_where_scores_come_from_and_a_chart() -> None:
    assert markdown(report("b|c d", score=1.2), report('a"', score=0.9, half_width=0.05)) == (
        """\
**NVIDIA H100 80GB HBM3**: score = t(cuBLAS SGEMM) / t(kernel); 1.00 is cuBLAS.

| kernel | score | 95 % interval | rank | ms | of FP32 peak | cores |
|---|---:|---|---:|---:|---:|---|
| [a"](solutions/a".cu) | [**0.900**](reports/a".json) | 0.850 to 0.950 | unsteady | 8.000 | 77 % \
| cuda |
| [b\\|c d](solutions/b|c%20d.cu) | [**1.200**](reports/b|c%20d.json) | 1.198 to 1.202 | 1 \
| 8.000 | 77 % | cuda |

SM clock 1755 MHz, 653 to 653 W as NVML read it (medians of the rounds; a short kernel is over \
before the reading has caught up), driver 580.95.05, CUDA 13.0, cuBLAS 13.0.2, """
        f"judge {NOW.judge}, cases {NOW.cases}, graded 2026-01-01. "
        """\
A score leads to its report, which has registers, occupancy and all else. Graded on one GPU of \
this model (GPU-0): the ranks hold for it, and the intervals do not have in them how much others \
differ.

```mermaid
xychart-beta horizontal
    title "Score; the line at 1 is cuBLAS"
    x-axis ["b|c d"]
    y-axis "× cuBLAS" 0 --> 1.26
    bar [1.200]
    line [1]
```"""
    )


def test_what_differs_between_rows_is_a_span() -> None:
    old = Edition("0.0.1", NOW.cases)
    text = markdown(report("a", day=2), report("b", edition=old), report("c", uuid="GPU-1", day=1))
    assert f"judge 0.0.1 to {NOW.judge}" in text and "graded 2026-01-01 to 2026-01-03" in text
    assert f"cases {NOW.cases}, " in text


def test_a_chart_reaches_a_tenth_beyond_cublas_and_names_are_quoted() -> None:
    text = markdown(report('a"b', score=0.5), report("c", score=0.6))
    assert 'x-axis ["a\'b", "c"]' in text and "0 --> 1.10" in text
    assert "bar [0.500, 0.600]" in text and "line [1, 1]" in text


def test_a_board_without_a_ranked_row_has_no_chart() -> None:
    text = markdown(report(half_width=0.1))
    assert "unsteady" in text and "mermaid" not in text and "Graded on one" not in text
    (provenance,) = (line for line in text.splitlines() if line.startswith("SM clock"))
    assert provenance.endswith(".")


def test_what_a_report_does_not_say_is_a_dash() -> None:
    made = report()
    assert made.kernel is not None and made.device is not None
    unread = {"instructions": {}, "badges": (Badge.DEFAULT_LAUNCH,)}
    kernel = made.kernel.model_copy(update=unread)
    device = made.device.model_copy(update={"driver": None})
    text = markdown(made.model_copy(update={"kernel": kernel, "device": device}))
    assert "| – |\n" in text and "driver –, CUDA 13.0," in text


def test_each_gpu_has_its_board_and_none_is_said() -> None:
    text = markdown(report("a"), report("a", gpu="NVIDIA L4"))
    assert text.count("| kernel | score |") == 2 and "\n\n**NVIDIA L4**: " in text
    assert markdown() == "No report is committed yet."


def sized(name: str, **sizes: float | None) -> Report:
    made = report(name)
    assert made.measurement is not None and made.score is not None
    found = tuple(
        SizeScore(
            shape=Shape(*map(int, shape.strip("_").split("x"))),
            score=made.score.model_copy(update={"ratio": ratio})
            if ratio
            else Unscored(reason="throttled", message=""),
        )
        for shape, ratio in sizes.items()
    )
    measurement = made.measurement.model_copy(update={"sizes": found})
    return made.model_copy(update={"measurement": measurement})


def test_other_sizes_are_shown_six_kernels_beside_one_another() -> None:
    names = [f"{letter}*" for letter in "abcdefg"]
    first = [sized(name, _8x9x10=0.5, _1x2x3=None) for name in names[:6]]
    text = markdown(*first, sized(names[6], _4x5x6=0.25), report("z"))
    assert text.endswith(
        """

Other sizes, M×N×K, for information:

| size | a\\* | b\\* | c\\* | d\\* | e\\* | f\\* |
|---|---:|---:|---:|---:|---:|---:|
| 8×9×10 | 0.500 | 0.500 | 0.500 | 0.500 | 0.500 | 0.500 |
| 1×2×3 | – | – | – | – | – | – |
| 4×5×6 | – | – | – | – | – | – |

| size | g\\* |
|---|---:|
| 8×9×10 | – |
| 1×2×3 | – |
| 4×5×6 | 0.250 |"""
    )


@pytest.mark.parametrize("character", "\\`*[]<>|")
def test_no_character_of_a_name_means_anything(character: str) -> None:
    assert readme._cell(f"a{character}X b") == f"a\\{character}X b"


# -------------------------------------------------------------------------------- the markers

TEXT = "# Title é\n<!-- board -->\nold\n<!-- /board -->\nend\n"


def test_a_section_stands_between_two_markers() -> None:
    assert readme.section(TEXT) == "old"
    assert readme.section("<!-- board --><!-- /board -->") == ""
    assert readme.section("<!-- board -->\n\n  X \n<!-- /board -->") == "  X "
    assert readme.section("<!-- board -->\nX\n<!-- /board -->") == "X"


@pytest.mark.parametrize(
    "text",
    [
        "nothing",
        TEXT.replace("<!-- board -->", ""),
        TEXT.replace("<!-- /board -->", ""),
        TEXT + "<!-- board -->",
        TEXT + "<!-- /board -->",
        "<!-- /board -->\n<!-- board -->",
    ],
)
def test_without_one_of_each_in_order_there_is_none(text: str, tmp_path: Path) -> None:
    assert readme.section(text) is None
    path = tmp_path / "README.md"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match=r"README\.md needs one <!-- board --> and, after it"):
        readme.write(path, "new")
    assert path.read_text(encoding="utf-8") == text


def test_only_what_stands_between_them_is_written(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(TEXT, encoding="utf-8")
    assert readme.write(path, "new ×")
    assert path.read_text(encoding="utf-8") == TEXT.replace("old", "new ×")
    assert not readme.write(path, "new ×")


def test_watts_are_those_of_the_reports_that_have_them() -> None:
    made = report("a")
    assert made.measurement is not None
    watts = itertools.cycle([700, 710])
    rounds = tuple(
        each.model_copy(update={"power_w": next(watts)}) for each in made.measurement.rounds
    )
    measurement = made.measurement.model_copy(update={"rounds": rounds})
    text = markdown(made.model_copy(update={"measurement": measurement}), report("b"))
    assert "653 to 705 W" in text
