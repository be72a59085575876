"""A source with what is said of its lines, however long it is and whatever stands in it."""

from __future__ import annotations

import re

from harness.board.annotated_source import (
    MAX_CHARACTERS,
    MAX_LINES,
    AnnotatedSource,
    annotated_source,
)
from harness.protocol.report import (
    Diagnostic,
    Finding,
    Hazard,
    LineCounters,
    Outcome,
    Place,
    Race,
    Report,
    RuntimeFault,
    Stage,
    Tool,
)
from tests.board.factory import report, uncompilable


def plain(**parts: object) -> Report:
    """A report in which nothing is said of a line, but for these parts."""
    return report(source="one\ntwo\nthree\n").model_copy(
        update={"diagnostics": (), "counters": None} | parts
    )


def notes(made: Report) -> dict[int, list[tuple[str, str]]]:
    return {
        line.number: [(note.kind, note.text) for note in line.notes]
        for line in annotated_source(made).lines
        if line.notes
    }


def test_lines_are_numbered_from_one_and_escaped() -> None:
    made = annotated_source(report(source="int a = 1 < 2;  \n\n</code>&\n\n"))
    assert [line.number for line in made.lines] == [1, 2, 3] and made.hidden == 0
    assert "&lt;" in made.lines[0].code and made.lines[1].code == ""
    assert "</code>" not in made.lines[2].code and "&amp;" in made.lines[2].code
    assert not made.lines[0].code.endswith(" ")


def test_a_limited_number_of_lines_is_shown() -> None:
    exactly, more = (
        annotated_source(report(source="x\n" * count)) for count in (MAX_LINES, MAX_LINES + 2)
    )
    assert (len(exactly.lines), exactly.hidden) == (MAX_LINES, 0)
    assert (len(more.lines), more.hidden) == (MAX_LINES, 2)


def test_a_limited_number_of_characters_is_shown() -> None:
    half = "x" * (MAX_CHARACTERS // 2)
    assert annotated_source(report(source=f"{half}\n{half}\n")).hidden == 0
    cut = annotated_source(report(source=f"{half}\n{half}y\nlast\n"))
    assert (len(cut.lines), cut.hidden) == (1, 2)
    nothing = annotated_source(report(source=f"{half}{half}y\nlast\n"))
    assert nothing == AnnotatedSource((), 2)


def failing(outcome: Outcome) -> Report:
    return plain(outcome=outcome)


def test_a_diagnostic_is_at_its_line() -> None:
    warnings = (
        Diagnostic(severity="warning", message="unused", line=2),
        Diagnostic(severity="note", message="here", line=2),
        Diagnostic(severity="warning", message="of the whole file"),
    )
    assert notes(plain(diagnostics=warnings)) == {2: [("warning", "unused"), ("note", "here")]}
    broken = uncompilable().model_copy(update={"diagnostics": warnings[:1], "counters": None})
    assert notes(broken) == {6: [("error", "expected a ';'")], 2: [("warning", "unused")]}


def test_a_finding_is_at_both_of_its_lines_once() -> None:
    race = Finding(
        tool=Tool.RACECHECK,
        hazard=Hazard.RACE,
        message="a race",
        at=Place(line=1),
        other=Place(line=3),
    )
    same = race.model_copy(update={"other": Place(line=1)})
    alone = race.model_copy(update={"other": None, "at": Place(line=2)})
    nowhere = race.model_copy(update={"other": None, "at": Place()})
    said = ("error", "racecheck: a race")

    def found(*findings: Finding) -> dict[int, list[tuple[str, str]]]:
        return notes(failing(Race(stage=Stage.SANITIZE, message="a race", findings=findings)))

    assert found(race) == {1: [said], 3: [said]}
    assert found(same) == {1: [said]}
    assert found(alone, nowhere) == {2: [said]}


def test_where_a_launch_stopped_is_marked() -> None:
    trapped = RuntimeFault(stage=Stage.VERIFY, message="it trapped", at=Place(line=2))
    assert notes(failing(trapped)) == {2: [("error", "it trapped")]}
    assert notes(failing(trapped.model_copy(update={"at": Place()}))) == {}
    assert notes(failing(trapped.model_copy(update={"at": None}))) == {}


def test_counters_of_memory_are_at_their_line() -> None:
    model = report().counters
    assert model is not None
    lines = (
        LineCounters(line=1, instructions=9, global_requests=4096, global_sectors=9216),
        LineCounters(line=2, instructions=9, shared_requests=2, shared_wavefronts=3),
        LineCounters(
            line=3,
            instructions=9,
            global_requests=1,
            global_sectors=32,
            shared_requests=1,
            shared_wavefronts=1,
        ),
        LineCounters(line=4, instructions=9),
    )
    made = notes(plain(counters=model.model_copy(update={"lines": lines})))
    assert made == {
        1: [("counters", "global memory: 4\N{NO-BREAK SPACE}096 requests, 2.2 sectors each")],
        2: [("counters", "shared memory: 2 requests, 1.5 wavefronts each")],
        3: [
            (
                "counters",
                "global memory: 1 requests, 32.0 sectors each; "
                "shared memory: 1 requests, 1.0 wavefronts each",
            )
        ],
    }


def shown(source: str) -> list[str]:
    made = annotated_source(report(source=source))
    assert made.hidden == 0
    return [re.sub("<[^>]*>", "", str(line.code)) for line in made.lines]


def test_blank_lines_are_kept_except_at_the_end() -> None:
    assert shown("\n\n  int a;  \n  \nX\n") == ["", "", "  int a;", "", "X"]
    assert shown("int a;\n  \n\n") == ["int a;"]
