"""Tests of entering reports: their schema, bounds and normal form, and their index row."""

import copy
import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.board import names
from harness.board.document import Document
from harness.board.entry import ANONYMOUS, INDEXED, Entry, Version, facts, own_facts, usual_facts
from harness.board.ranking import rank
from harness.cli.commands.leaderboard import screen
from harness.cli.views.console import SafeConsole
from harness.protocol.errors import StoreError
from harness.protocol.report import Badge, Report
from tests.board import factory

Json = dict[str, Any]
HONEST: Json = json.loads(factory.report().model_dump_json())
TEXT = json.dumps(HONEST)


def changed(path: str, value: Any) -> Json:
    """Return the honest report with one value changed."""
    data = copy.deepcopy(HONEST)
    factory.replace_at(data, path, value)
    return data


REFUSED: dict[str, tuple[str | Json, str]] = {
    "no JSON": ("{", "is not a report"),
    "another kind of JSON": ("[]", "is not a report"),
    "half a surrogate": (TEXT.replace('"ada"', '"\\ud800"'), "is not a report"),
    "a seed without end": (TEXT.replace('"seed": 7', '"seed": 1e400'), "is not a report"),
    "a seed of 5000 digits": (TEXT.replace('"seed": 7', f'"seed": {"7" * 5000}'), "not a report"),
    "nested too deep": (TEXT.replace('"printed": ""', '"printed": ' + "[" * 100_000), "not a rep"),
    "a field too many": (HONEST | {"rank": 1}, "rank: Extra inputs"),
    "a field too few": ({k: v for k, v in HONEST.items() if k != "seed"}, "seed: Field required"),
    "a malformed signature": (HONEST | {"signature": {"key": "z", "value": "y"}}, "signature.key"),
    "a signature of nobody": (
        HONEST | {"signature": {"key": "12" * 32, "value": "34" * 64}},
        "was changed after it was signed",
    ),
    "many items": (changed("kernel__instructions", {f"F{i}": 1 for i in range(30_000)}), "items"),
    "a long key": (changed("kernel__instructions", {"F" * 1000: 1}), "key that is too long"),
    "a long text": (changed("printed", "x" * 100_000), "printed is longer"),
    "a large source": (changed("submission__source", "x" * (1 << 21)), "source is longer"),
    "a tower of accents": (changed("submission__author", "a" + "\u0301" * 90), "marks on one"),
}
with open(Path(__file__).with_name("refused_reports.csv"), newline="", encoding="utf-8") as file:
    REFUSED |= {
        row["what"]: (changed(row["place"], json.loads(row["value"])), row["said"])
        for row in csv.DictReader(file)
    }


@pytest.mark.parametrize(("data", "why"), REFUSED.values(), ids=REFUSED.keys())
def test_invalid_reports_are_refused_in_one_sentence(data: str | Json, why: str) -> None:
    text = data if isinstance(data, str) else json.dumps(data)
    assert text != TEXT
    with pytest.raises(StoreError) as refused:
        Document.parse(text, "forged.json")
    assert str(refused.value).startswith("forged.json") and why in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_report_has_one_text_however_it_is_written() -> None:
    texts = [
        json.dumps(HONEST),
        json.dumps({key: HONEST[key] for key in reversed(HONEST)}, indent=4),
        json.dumps(HONEST | {"created": "2026-01-01T13:00:00+01:00"}, ensure_ascii=True),
        json.dumps({key: value for key, value in HONEST.items() if value is not None}),
    ]
    assert len(set(texts)) == 4
    assert len({Document.parse(text, "copy").id for text in texts}) == 1


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values in it, at any depth."""
    items: Any = ()
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
    inner = [found for key, value in items for found in places(value, (*path, key))]
    return [path, *inner] if path else inner


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "Infinity", "NaN", "\x00", "\x1b[2J", "\u202e", "x" * 30_000, [], {}]),
    st.text(max_size=20),
)


@given(st.sampled_from(places(HONEST)), ANYTHING)
def test_any_value_anywhere_is_refused_or_shown_harmlessly(
    path: tuple[Any, ...], value: Any
) -> None:
    data = changed("__".join(map(str, path)), value)
    try:
        document = Document.parse(json.dumps(data), "forged.json")
    except StoreError as refused:
        assert "\n" not in str(refused)
        return
    entry = Entry.of(document.report, document.id)
    console = SafeConsole(record=True, width=80, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(screen(rank([entry]), [entry]))
    assert "\x1b" not in console.export_text()


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("ada\tlovelace", "ada lovelace"),
        ("  ada\n\nlovelace ", "ada lovelace"),
        ("a\u200bda", "ada"),
        ("\uff41da", "ada"),
        ("ad\u00ada", "ada"),
        ("\u202eada", "ada"),
        ("ada\ufe0f", "ada"),
        ("李小龙", "李小龙"),
        ("Zoë", "Zoë"),
    ],
)
def test_a_name_has_one_form(name: str, kept: str) -> None:
    assert names.normalised(name) == kept


@given(st.text(st.characters(codec="utf-8"), max_size=60))
def test_a_normalised_name_is_visible_and_stays_as_it_is(text: str) -> None:
    name = names.normalised(text)
    assert names.normalised(name) == name
    assert name.isprintable() and name == name.strip()


@pytest.mark.parametrize(("marks", "fits"), [(3, True), (4, False)])
def test_a_letter_has_three_marks_at_most(marks: int, fits: bool) -> None:
    assert (names.problem("x" + "\u0316" * marks + "y\u0316") is None) == fits


def with_kernel(**facts: Any) -> Report:
    made = factory.report()
    return made.model_copy(update={"kernel": made.kernel.model_copy(update=facts)})


def test_an_entry_has_what_ranking_needs() -> None:
    declared = {"seed": 1 << 100, "launch": Badge.DECLARED_LAUNCH}
    made = factory.report("tile", "ada", 0.9, version=Version("1.2.3", 4), **declared)
    found = json.loads(json.dumps(Entry.of(made, "an id")._asdict()))
    numbers = {name: round(value, 6) for name, value in found.items() if type(value) is float}
    assert found | numbers == json.loads(Path(__file__).with_name("entry.json").read_text())
    assert {*INDEXED} == {*Entry._fields} - {"verified"}


ABSENT: dict[str, tuple[Callable[[], Report], dict[str, Any]]] = {
    "no score": (
        lambda: factory.report(score=None),
        {"score": None, "low": None, "device": "CPU", "on_gpu": False, "uuid": None},
    ),
    "no kernel": (
        lambda: factory.uncompilable().model_copy(
            update={"device": None, "kernel": None, "verification": None, "sanitizing": ()}
        ),
        {"device": None, "cores": None, "registers": None, "stage": "compile", "accepted": False},
    ),
    "no author": (lambda: factory.report(author=None), {"author": ANONYMOUS}),
    "no machine code": (lambda: with_kernel(instructions={}), {"cores": None, "launch": None}),
    "no badge of cores": (
        lambda: with_kernel(badges=(Badge.DEFAULT_LAUNCH,)),
        {"cores": None, "launch": "default-launch", "badges": {"default-launch"}},
    ),
}


@pytest.mark.parametrize(("make", "expected"), ABSENT.values(), ids=ABSENT.keys())
def test_an_entry_lacks_what_its_report_lacks(make: Callable[[], Report], expected: Json) -> None:
    entry = Entry.of(make(), "x")
    assert {name: getattr(entry, name) for name in expected} == expected


def test_a_kernel_is_its_program_or_else_its_file() -> None:
    assert Entry.of(with_kernel(program_sha256="a" * 64), "x").code == "a" * 64
    older = with_kernel(program_sha256=None)
    assert Entry.of(older, "x").code == older.submission.sha256
    # The report of another judge may state the hash of another file.
    forged = older.submission.model_copy(update={"sha256": "0" * 64})
    entry = Entry.of(older.model_copy(update={"submission": forged}), "x")
    assert entry.code == entry.sha256 == older.submission.sha256


def test_facts_that_most_rows_share_are_stated_once() -> None:
    one = factory.entry("tile", "ada")
    other = one._replace(author="bob", clock_mhz=1980, driver=None)
    assert facts(one)["driver"] == "driver 580.95.05" and "driver" not in facts(other)
    common = usual_facts([one, other])
    assert {*common} == {"graded", "cuda", "cublas", "judge", "cases"}
    assert own_facts(other, common) == {"author": "by bob", "clock": "1980 MHz"}
    assert usual_facts([one, one, other])["author"] == "by ada"
    assert usual_facts([]) == {}
