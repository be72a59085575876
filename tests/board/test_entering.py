"""Tests of entering reports: their schema, bounds and normal form, and their index row."""

import copy
import json
from collections.abc import Callable
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
NOW = Version.current()


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
    "another schema": (changed("schema_version", 2), "schema_version"),
    "a field too many": (HONEST | {"rank": 1}, "rank: Extra inputs"),
    "a field too few": ({k: v for k, v in HONEST.items() if k != "seed"}, "seed: Field required"),
    "another verdict": (changed("outcome__verdict", "perfect"), "outcome"),
    "text for a number": (changed("outcome__score__ratio", "much"), "ratio"),
    "a malformed signature": (HONEST | {"signature": {"key": "z", "value": "y"}}, "signature.key"),
    "a signature of nobody": (
        HONEST | {"signature": {"key": "12" * 32, "value": "34" * 64}},
        "was changed after it was signed",
    ),
    "a wrong hash": (changed("submission__sha256", "0" * 63), "sha256"),
    "an infinite score": (changed("outcome__score__ratio", "Infinity"), "cannot be measured"),
    "a score that is no number": (changed("outcome__score__ratio", "NaN"), "cannot be measured"),
    "a huge integer": (changed("device__l2_bytes", 10**30), "l2_bytes is too large"),
    "a huge seed": (changed("seed", 10**300), "seed is too large"),
    "a huge float": (changed("outcome__score__tflops", 1e300), "tflops is 1e+300"),
    "many items": (changed("kernel__instructions", {f"F{i}": 1 for i in range(30_000)}), "items"),
    "a long key": (changed("kernel__instructions", {"F" * 1000: 1}), "key that is too long"),
    "a long text": (changed("printed", "x" * 100_000), "printed is longer"),
    "a large source": (changed("submission__source", "x" * (1 << 21)), "source is longer"),
    "the year 9999 in the west": (changed("created", "9999-12-31T23:59:59-14:00"), "year 9999"),
    "the year 1 in the east": (changed("created", "0001-01-01T00:00:00+14:00"), "the year 1 "),
    "a name of nothing": (changed("submission__name", "\u200b"), "has no visible character"),
    "an author of blanks": (changed("submission__author", "\u2800\u3164"), "no visible"),
    "a tower of accents": (changed("submission__author", "a" + "\u0301" * 90), "marks on one"),
    "a long name": (changed("submission__name", "x" * 101), "longer than 100 characters"),
    "a path": (changed("submission__name", "../../.profile"), "would lead to another folder"),
    "a path in full width": (changed("submission__name", "．．／x"), "another folder"),
    "a device of nothing": (changed("device__name", ""), "the name of a device"),
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
    made = factory.report("tile", "ada", 0.9, seed=1 << 100, launch=Badge.DECLARED_LAUNCH)
    assert Entry.of(made, "an id" * 4)._asdict() == {
        "id": "an id" * 4,
        "created": "2026-01-01T12:00:00.000000+00:00",
        "name": "tile",
        "author": "ada",
        "sha256": made.submission.sha256,
        "code": made.kernel.program_sha256,
        "verdict": "accepted",
        "stage": None,
        "quick": False,
        "judge": NOW.judge,
        "cases": NOW.cases,
        "seed": str(1 << 100),
        "device": "NVIDIA H100 80GB HBM3",
        "on_gpu": True,
        "driver": "580.95.05",
        "cuda": "13.0",
        "cublas": "13.0.2",
        "clock_mhz": 1755,
        "score": 0.9,
        "low": pytest.approx(0.898),
        "high": pytest.approx(0.902),
        "kernel_ms": 8,
        "baseline_ms": 7.2,
        "tflops": pytest.approx(51.54, abs=0.01),
        "peak_share": pytest.approx(0.77, abs=0.01),
        "cores": "cuda-cores",
        "launch": "declared-launch",
        "registers": 128,
        "uuid": "GPU-0",
        "accuracy": None,
        "verified": False,
    }
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
