"""No view lets the text of a report act on a terminal or a page."""

import io
import json
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from rich.console import RenderableType

from harness.board.document import Document
from harness.board.entry import Entry
from harness.board.ranking import rank
from harness.board.regrade import Change
from harness.board.site import Site
from harness.cli.commands import leaderboard, regrade, tune
from harness.cli.views import grading
from harness.cli.views.console import SafeConsole, Terminal
from harness.cli.views.progress import TerminalProgress
from harness.judge.tune.tune import Variant
from harness.protocol.report import JudgeError, Report, RuntimeFault, Stage, Value
from tests.board import factory
from tests.board.test_site import Elements

MARKUP = "<img src=x onload='a()'>{{7*7}}\""
ATTACK = "\x1b]0;x\x07\x1b[2J\x9b31m\r\b\u202e\u200b\x00\x85\u2028[bold]A:smile:\x7f\x1b[?25l"
ACTIVE = ("Cc", "Cf", "Cs", "Zl", "Zp")
KINDS = 8
"""Of reports."""


def poisoned(value: Value, keep: tuple[str, ...] = ()) -> Any:
    """The value with the attack in every text that its type lets a stranger choose."""
    data = value.model_dump(mode="json")

    def accepted() -> bool:
        try:
            type(value).model_validate(data)
        except ValidationError:
            return False
        return True

    count = 0
    for owner, key in list(places(data)):
        before = owner[key]
        if isinstance(key, str) and key in keep:
            continue
        owner[key] = f"{before[:20]}{MARKUP}{ATTACK}"
        if accepted():
            count += 1
        else:
            owner[key] = before
    assert count
    return type(value).model_validate(data)


def places(data: Any) -> Iterator[tuple[Any, Any]]:
    """Every text in it, as the list or dictionary that holds it and where."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        if isinstance(value, str):
            yield data, key
        elif isinstance(value, dict | list):
            yield from places(value)


@cache
def poisoned_reports() -> tuple[Report, ...]:
    """One of each kind. Made by the first test: everybody who tests side by side collects these."""
    fault = RuntimeFault(stage=Stage.VERIFY, message="trap")
    ours = JudgeError(stage=Stage.VERIFY, message="ours", details="Traceback")
    made = (
        factory.report("tile", "ada", 0.9),
        factory.report("laptop", "ada", score=None),
        factory.rejected(),
        factory.wrong(),
        factory.uncompilable(),
        factory.report(outcome=fault),
        factory.report(outcome=ours),
        factory.report().model_copy(update={"printed": "words"}),
    )
    assert len(made) == KINDS
    return tuple(poisoned(report, keep=("created", "judge")) for report in made)


def entry(report: Report) -> Entry:
    return Entry.of(report, Document.of(report).id)


def ranking() -> RenderableType:
    entries = [entry(report) for report in poisoned_reports()]
    return leaderboard.screen(rank(entries), entries)


def changes() -> RenderableType:
    one, other = (entry(report) for report in poisoned_reports()[:2])
    changed = [Change(one, other, True, ATTACK), Change(other, None, False, "x")]
    return regrade.screen(changed)


SCREENS: dict[str, Callable[[], RenderableType]] = {
    **{f"grading {n}": lambda n=n: grading.screen(poisoned_reports()[n]) for n in range(KINDS)},
    **{
        f"verdict {n}": lambda n=n: grading.verdict_line(poisoned_reports()[n])
        for n in range(KINDS)
    },
    "summary": lambda: grading.summary(poisoned_reports()),
    "leaderboard": ranking,
    "regrading": changes,
}


def assert_harmless(shown: str, coloured: bool) -> None:
    if coloured:  # the judge's own colours stay
        shown = "".join(part.partition("m")[2] for part in f"\x1b[m{shown}".split("\x1b[")[1:])
    active = {c for c in shown if unicodedata.category(c) in ACTIVE} - {"\n"}
    assert not active, active


@pytest.mark.parametrize("coloured", [False, True])
@pytest.mark.parametrize("name", SCREENS)
def test_no_screen_lets_text_act(name: str, coloured: bool) -> None:
    out = io.StringIO()
    console = SafeConsole(
        file=out, width=80, force_terminal=coloured, color_system="256" if coloured else None
    )
    console.print(SCREENS[name]())
    shown = out.getvalue()
    assert "\N{REPLACEMENT CHARACTER}" in shown
    assert_harmless(shown, coloured)
    assert "[bold]A" in shown.replace("\n", "") or "…" in shown, "text was taken for markup"


def test_progress_lets_no_text_act() -> None:
    out = io.StringIO()
    console = SafeConsole(file=out, width=200)
    variant = Variant(setting={ATTACK: 1}, outcome=RuntimeFault(stage="verify", message=ATTACK))
    with tune.TuningProgress(console, 1) as progress:
        progress.trying(variant.setting)
        progress.step(ATTACK)
        progress.tried(variant)
    assert_harmless(out.getvalue(), coloured=False)
    out = io.StringIO()
    with TerminalProgress(SafeConsole(file=out, force_terminal=True), ATTACK) as bar:
        bar.begin(Stage.VERIFY, 3)
        bar.step(ATTACK)
    for forbidden in ("\x1b]0", "\x1b[2J\x9b", "\x07", "\x08", "\u202e"):
        assert forbidden not in out.getvalue()


def test_json_is_harmless_to_a_terminal_and_complete(capsys: pytest.CaptureFixture[str]) -> None:
    terminal = Terminal()
    terminal.show(ATTACK)
    terminal.note(ATTACK)
    assert terminal.confirm(ATTACK) is False
    out, err = capsys.readouterr()
    assert_harmless(out, coloured=False)
    assert_harmless(err, coloured=False)
    everything = ATTACK + "\U000e0001 naïve 🚀"
    terminal.json(json.dumps({"text": everything}, ensure_ascii=False))
    out, _ = capsys.readouterr()
    assert_harmless(out, coloured=False)
    assert json.loads(out) == {"text": everything}
    assert "naïve 🚀" in out
    terminal.file(everything)
    assert capsys.readouterr().out == everything  # into a file or a pipe, word for word


def test_a_file_shown_on_a_terminal_is_harmless(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    Terminal().file(f"int\tx;\n{ATTACK}\n")
    assert_harmless(capsys.readouterr().out, coloured=False)


def test_no_page_lets_text_act(tmp_path: Path) -> None:
    documents = {each.id: each for each in map(Document.of, poisoned_reports())}
    entries = [
        Entry.of(each.report, id)._replace(verified=number % 2 == 0)
        for number, (id, each) in enumerate(documents.items())
    ]
    site = Site(tmp_path / "site", entries)
    site.write_boards()
    assert list(site.write_entries(documents.__getitem__)) == [None] * len(documents)
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) == len(documents) + 2
    for page in pages:
        assert_harmless(page.read_text(encoding="utf-8"), coloured=False)
        elements = Elements(page)
        assert MARKUP in elements.text
        for tag, attributes in elements.found:
            assert tag != "img" and not [name for name in attributes if name.startswith("on")]
            assert tag != "script" or attributes["src"], "a script without a file"
