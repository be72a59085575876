"""What a board says of reports that no judge has written, or that were changed since."""

from __future__ import annotations

import copy
import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.board.document import Document, StoreError
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Standing, rank
from harness.board.site import Site
from harness.board.store import Store
from harness.cli.views.console import SafeConsole
from harness.cli.views.leaderboard import screen
from harness.judge.stages.score import MIN_RATIOS
from harness.protocol.report import Report, Tool
from tests.board import factory
from tests.board.conftest import Call

NOW = Edition.current()
Json = dict[str, Any]
HONEST: Json = json.loads(factory.report().model_dump_json())
WRONG: Json = json.loads(factory.wrong().model_dump_json())
OTHER = factory.SOURCE + "__device__ int other;\n"


def changed(data: Json, **changes: Any) -> Json:
    """A copy in which a__b is data["a"]["b"], and a__3__b the b of its fourth item. It shares with
    `data` what is not changed."""
    made = data
    for path, value in changes.items():
        steps = [int(step) if step.isdecimal() else step for step in path.split("__")]
        made = _with(made, steps, value)
    return made


def _with(data: Any, steps: list[int | str], value: Any) -> Any:
    first, *rest = steps
    made = copy.copy(data)
    made[first] = _with(data[first], rest, value) if rest else value
    return made


def every_round(**changes: Any) -> Json:
    rounds = [changed(each, **changes) for each in HONEST["measurement"]["rounds"]]
    return changed(HONEST, measurement__rounds=rounds)


def without(data: Json, path: str) -> Json:
    *way, last = path.split("__")
    made = copy.deepcopy(data)
    owner: Any = made
    for step in way:
        owner = owner[step]
    del owner[last]
    return made


def other_cases(**changes: Any) -> Json:
    cases = copy.deepcopy(HONEST["verification"]["cases"])
    cases[1] |= changes
    return changed(HONEST, verification__cases=cases)


def tools(*statuses: str) -> list[Json]:
    return [
        {"tool": t.value, "status": s, "seconds": 1} for t, s in zip(Tool, statuses, strict=True)
    ]


AHEAD = (datetime.now(UTC) + timedelta(days=400)).isoformat()

REFUSED: list[tuple[str, Json, str]] = [
    # A score that the rounds do not give.
    ("score", changed(HONEST, outcome__score__ratio=1.9), "a ratio of 1.9, its rounds say 0.9"),
    ("low", changed(HONEST, outcome__score__low=0.8999), "a low of 0.8999"),
    ("high", changed(HONEST, outcome__score__high=0.9001), "a high of 0.9001"),
    ("time", changed(HONEST, outcome__score__kernel_ms=1.0), "a kernel_ms of 1"),
    ("baseline", changed(HONEST, outcome__score__baseline_ms=9.0), "a baseline_ms of 9"),
    ("tflops", changed(HONEST, outcome__score__tflops=99.0), "a tflops of 99"),
    ("peak share", changed(HONEST, outcome__score__peak_share=0.2), "a peak_share of 0.2"),
    ("no peak share", changed(HONEST, outcome__score__peak_share=None), "a peak_share of None"),
    (
        "infinite score",
        changed(HONEST, outcome__score__ratio="Infinity"),
        "nobody can have measured",
    ),
    ("NaN score", changed(HONEST, outcome__score__ratio="NaN"), "nobody can have measured"),
    ("negative score", changed(HONEST, outcome__score__ratio=-1.0), "its rounds say 0.9"),
    ("scored though throttled", every_round(dropped=True), f"fewer than {MIN_RATIOS} rounds"),
    (
        "few rounds",
        changed(HONEST, measurement__rounds=HONEST["measurement"]["rounds"][:6]),
        "fewer",
    ),
    ("no rounds", changed(HONEST, measurement__rounds=[]), f"fewer than {MIN_RATIOS} rounds"),
    ("no time", every_round(kernel_ms=0), "a round took no time"),
    ("no baseline time", every_round(baseline_ms=0), "a round took no time"),
    ("infinite time", every_round(baseline_ms="Infinity"), "nobody can have measured"),
    ("faster than the GPU", every_round(kernel_ms=1e-3, kernel_host_ms=0.02), "its rounds say"),
    ("faster than the host's clock", every_round(kernel_ms=1e-3), "do not agree"),
    ("rounds that are wrong", every_round(check=1.5), "a timed launch is wrong"),
    ("no audit", changed(HONEST, measurement__audit_error=None), "checked in full was not"),
    ("wrong audit", changed(HONEST, measurement__audit_error=0.5), "checked in full"),
    (
        "unscored rounds that give a score",
        changed(HONEST, outcome__score={"reason": "throttled", "message": "hot"}),
        "its rounds give a score and it has none",
    ),
    ("one clock", every_round(kernel_host_ms=None), "the host's clock was not read"),
    ("no clock of the baseline's", every_round(baseline_host_ms=None), "was not read"),
    ("a host that is too early", every_round(kernel_host_ms=0.5), "less than the GPU's events"),
    ("a host that is late for the kernel", every_round(kernel_host_ms=50.0), "do not agree"),
    (
        "a host that is late in two of five rounds",
        changed(
            HONEST,
            measurement__rounds=[
                changed(each, kernel_host_ms=8.02 + (number % 5 < 2) * 4)
                for number, each in enumerate(HONEST["measurement"]["rounds"])
            ],
        ),
        "do not agree",
    ),
    (
        "a round that counts though its clocks differ",
        changed(HONEST, measurement__rounds__3__kernel_host_ms=9.9),
        "a round counts in which the two clocks do not agree",
    ),
    ("a host's clock that is no number", every_round(kernel_host_ms="NaN"), "kernel_host_ms"),
    ("the same round again and again", every_round(baseline_ms=7.2, baseline_host_ms=7.22), "low"),
    ("a residual below nothing", every_round(check=-1), "rounds.0.check"),
    ("a residual that is no number", every_round(check="NaN"), "rounds.0.check"),
    ("a GPU clock that is no number", every_round(clock_mhz="NaN"), "rounds.0.clock_mhz"),
    ("power without end", every_round(power_w="Infinity"), "nobody can have measured"),
    ("power below nothing", every_round(power_w=-5), "rounds.0.power_w"),
    ("an audit below nothing", changed(HONEST, measurement__audit_error=-1.0), "audit_error"),
    ("an audit that is no number", changed(HONEST, measurement__audit_error="NaN"), "audit_error"),
    ("a reason to stop", changed(HONEST, measurement__stopped_by="\x1b[2J"), "stopped_by"),
    ("no warm-up", changed(HONEST, measurement__warm_up_launches=-1), "warm_up_launches"),
    # A source, a kernel or a device that is another's.
    (
        "a sha256 in capitals",
        changed(HONEST, submission__sha256=HONEST["submission"]["sha256"].upper()),
        "sha256",
    ),
    (
        "a code hash with a line end",
        changed(HONEST, kernel__code_sha256=HONEST["kernel"]["code_sha256"] + "\n"),
        "code_sha256",
    ),
    ("no registers", changed(HONEST, kernel__resources__registers=0), "occupancy"),
    ("too many registers", changed(HONEST, kernel__resources__registers=4096), "occupancy"),
    ("fewer than no instructions", changed(HONEST, kernel__instructions={"FFMA": -1}), "FFMA"),
    ("no memory", changed(HONEST, device__memory_bytes=0), "memory_bytes"),
    (
        "a GPU that looks like another",
        changed(HONEST, device__name="NVIDIA \u041d100"),
        "cannot be the name of a device: it has letters",
    ),
    ("a driver of another type", changed(HONEST, device__driver=13), "device.driver"),
    ("source", changed(HONEST, submission__source=OTHER), "does not have the sha256"),
    ("sha256", changed(HONEST, submission__sha256="0" * 64), "does not have the sha256"),
    ("wrong answer's source", changed(WRONG, submission__source=OTHER), "sha256"),
    ("code hash", changed(HONEST, kernel__code_sha256="0" * 64), "another kernel"),
    ("launch", changed(HONEST, kernel__launch__tile_rows=128), "asks for another launch"),
    ("cores", changed(HONEST, kernel__badges=["tensor-cores", "default-launch"]), "badges do not"),
    ("launch badge", changed(HONEST, kernel__badges=["cuda-cores", "declared-launch"]), "badges"),
    (
        "badges in any order",
        changed(HONEST, kernel__badges=["default-launch", "cuda-cores"]),
        "badg",
    ),
    ("instructions", changed(HONEST, kernel__instructions={"HGMMA": 1}), "tensor-cores"),
    ("occupancy", changed(HONEST, kernel__occupancy__warps=64), "occupancy does not follow"),
    ("registers", changed(HONEST, kernel__resources__registers=32), "occupancy does not follow"),
    ("architecture", changed(HONEST, kernel__arch="sm_80"), "compiled for sm_80 and ran on sm_90a"),
    ("unknown architecture", changed(HONEST, kernel__arch="sm_1"), "unknown GPU architecture"),
    ("peak", changed(HONEST, device__fp32_peak_tflops=1e6), "FP32 peak does not follow"),
    ("no peak", changed(HONEST, device__fp32_peak_tflops=None), "no peak"),
    ("negative peak", changed(HONEST, device__fp32_peak_tflops=-66.9), "does not follow"),
    ("clock", changed(HONEST, device__max_clock_mhz=19_800), "FP32 peak does not follow"),
    ("a CPU with a score", changed(HONEST, device__kind="cpu"), "measured without a GPU"),
    ("no device", changed(HONEST, device=None), "needs device"),
    ("no kernel", changed(HONEST, kernel=None), "needs kernel"),
    ("no measurement", changed(HONEST, measurement=None), "needs measurement"),
    # A verdict that does not follow.
    ("no sanitizers", changed(HONEST, sanitizing=[]), "needs sanitizing"),
    (
        "a tool that found something",
        changed(HONEST, sanitizing__0__tools=tools("clean", "found", "clean", "clean")),
        "racecheck found something",
    ),
    (
        "a tool that nobody ran",
        changed(HONEST, sanitizing__0__tools=tools("clean", "clean", "unavailable", "clean")),
        "no program has run initcheck",
    ),
    ("a wrong case", other_cases(error=0.1), "has an error of 0.1"),
    ("a case that is no number", other_cases(error="NaN"), "verification.cases.1.error"),
    ("worst error", changed(HONEST, verification__worst_error=1e-9), "worst error"),
    (
        "missing cases",
        changed(HONEST, verification__cases=HONEST["verification"]["cases"][:20]),
        "without all cases",
    ),
    (
        "not verified at the ranked size",
        changed(HONEST, verification__cases=HONEST["verification"]["cases"][:-1]),
        "verified at 8192×6144×4096",
    ),
    ("a quick run called complete", changed(HONEST, quick=True), "checked in full"),
    (
        "an accepted answer called wrong",
        changed(WRONG, outcome__counterexample__error=1e-7),
        "allowed",
    ),
    ("an error below nothing", other_cases(error=-1), "cases.1.error"),
    ("a case without end", other_cases(seconds="Infinity"), "nobody can have measured"),
    (
        "a shape below nothing",
        other_cases(case={"shape": {"M": -1, "N": 1, "K": 1}, "inputs": "uniform"}),
        "every size is at least 1",
    ),
    (
        "a stage that ended before it began",
        changed(HONEST, stages=[{"stage": "read", "seconds": -1}]),
        "stages.0.seconds",
    ),
    ("cases of no edition", changed(HONEST, environment__cases=0), "environment.cases"),
    ("half a seed", changed(HONEST, seed=7.5), "seed"),
    ("a year of five digits", changed(HONEST, created="+010000-01-01T00:00:00Z"), "created"),
    # Names and texts.
    ("an author of two alphabets", changed(HONEST, submission__author="\u0430da"), "two alphabets"),
    ("an author with a Greek letter", changed(HONEST, submission__author="\u03b1da"), "alphabets"),
    ("an author of blanks", changed(HONEST, submission__author="\u2800\u3164"), "can be seen"),
    ("an author of marks", changed(HONEST, submission__author="a" + "\u0301" * 90), "marks on one"),
    ("a kernel of marks", changed(HONEST, submission__name="k" + "\u0336" * 90), "marks on one"),
    ("no name", changed(HONEST, submission__name="\u200b"), "no character that can be seen"),
    ("a way out", changed(HONEST, submission__name="../../.profile"), "another folder"),
    ("a way out on Windows", changed(HONEST, submission__name="..\\autorun"), "another folder"),
    ("a folder", changed(HONEST, submission__name=".."), "another folder"),
    ("a full-width way out", changed(HONEST, submission__name="．．／x"), "another folder"),
    ("a long name", changed(HONEST, submission__name="x" * 101), "longer than 100"),
    ("a long author", changed(HONEST, submission__author="x" * 101), "longer than 100"),
    ("an author of nothing", changed(HONEST, submission__author="\x00"), "no character"),
    ("a GPU of nothing", changed(HONEST, device__name=""), "no character"),
    ("a long driver", changed(HONEST, device__driver="x" * 100_000), "driver is longer"),
    ("a long output", changed(HONEST, printed="x" * 100_000), "printed is longer"),
    ("a large source", changed(HONEST, submission__source="x" * (1 << 21)), "source is longer"),
    (
        "a long opcode",
        changed(HONEST, kernel__instructions={"F" * 1000: 1}),
        "key that is too long",
    ),
    # Numbers and lists.
    ("a huge integer", changed(HONEST, device__memory_bytes=10**30), "memory_bytes is too large"),
    ("a huge version", changed(HONEST, environment__cases=10**30), "cases is too large"),
    ("a huge seed", changed(HONEST, seed=10**300), "seed is too large"),
    (
        "an infinite bandwidth",
        changed(HONEST, device__memory_gb_per_s="Infinity"),
        "memory_gb_per_s",
    ),
    (
        "a huge float",
        changed(HONEST, stages=[{"stage": "read", "seconds": 1e300}]),
        "seconds is 1e+300",
    ),
    (
        "many opcodes",
        changed(HONEST, kernel__instructions={f"F{i}": 1 for i in range(30_000)}),
        "items",
    ),
    (
        "many rounds",
        changed(HONEST, measurement__rounds=HONEST["measurement"]["rounds"] * 1000),
        "items",
    ),
    ("the future", changed(HONEST, created=AHEAD), "which is not so"),
    (
        "the end of time, in the west",
        changed(HONEST, created="9999-12-31T23:59:59-14:00"),
        "the year 9999, which is not so",
    ),
    (
        "the beginning of time, in the east",
        changed(HONEST, created="0001-01-01T00:00:00+14:00"),
        "the year 1, which is not so",
    ),
    (
        "thousands of rounds that are late",
        changed(
            HONEST,
            measurement__rounds=[
                changed(each, kernel_host_ms=each["kernel_ms"] + 1)
                for each in (HONEST["measurement"]["rounds"] * 100)[:3000]
            ],
        ),
        "its two clocks do not agree",
    ),
    ("the past", changed(HONEST, created="1970-01-01T00:00:00Z"), "which is not so"),
    # What is no report at all.
    ("another schema", changed(HONEST, schema_version=2), "schema_version"),
    ("one field more", changed(HONEST, rank=1), "rank: Extra inputs"),
    ("one field less", without(HONEST, "seed"), "seed: Field required"),
    ("another verdict", changed(HONEST, outcome__verdict="perfect"), "outcome"),
    ("a text for a number", changed(HONEST, outcome__score__ratio="much"), "ratio"),
    (
        "a signature that is none",
        changed(HONEST, signature={"key": "zz", "value": "yy"}),
        "signature.key",
    ),
    (
        "a signature with more in it",
        changed(HONEST, signature={"key": "12" * 32, "value": "34" * 64, "own": True}),
        "signature.own",
    ),
    (
        "a signature of nobody",
        changed(HONEST, signature={"key": "12" * 32, "value": "34" * 64}),
        "signed",
    ),
]


def parsed(data: Json) -> Document:
    return Document.parse(json.dumps(data), "forged.json")


@pytest.mark.parametrize(("data", "said"), [pytest.param(*f[1:], id=f[0]) for f in REFUSED])
def test_a_forgery_is_refused_with_what_is_wrong(data: Json, said: str) -> None:
    with pytest.raises(StoreError, match=r"forged\.json") as refused:
        parsed(data)
    message = str(refused.value)
    assert said in message and "\n" not in message and len(message) < 500


def test_there_are_enough_of_them() -> None:
    assert len({name for name, *_ in REFUSED}) == len(REFUSED) >= 60


def test_the_honest_report_that_they_are_made_of_is_admitted() -> None:
    assert parsed(HONEST).report.score == factory.report().score
    assert parsed(WRONG).report.verdict == "wrong-answer"


TEXT = json.dumps(HONEST)
NO_REPORTS = {
    "nothing": "",
    "a brace": "{",
    "a list": "[]",
    "null": "null",
    "brackets": "[" * 100_000,
    "objects": '{"seed":' * 5000,
    "NUL": "\0",
    "a rocket": "🚀",
    "something behind it": TEXT + "x",
    "two of them": TEXT + TEXT,
    "a byte order mark": "\ufeff" + TEXT,
    "a comment": "/* */" + TEXT,
    "single quotes": TEXT.replace('"', "'"),
    "half a surrogate pair": TEXT.replace('"ada"', '"\\ud800"'),
    "half a pair in the output": TEXT.replace('"printed": ""', '"printed": "\\udfff"'),
    "a seed without end": TEXT.replace('"seed": 7', '"seed": 1e400'),
    "a seed of 5000 digits": TEXT.replace('"seed": 7', '"seed": ' + "7" * 5000),
    "brackets for a text": TEXT.replace('"printed": ""', '"printed": ' + "[" * 100_000),
}


@pytest.mark.parametrize("text", NO_REPORTS.values(), ids=NO_REPORTS.keys())
def test_what_is_no_report_is_refused(text: str) -> None:
    assert text != TEXT
    with pytest.raises(StoreError, match="is not a report"):
        Document.parse(text, "forged.json")


def test_of_a_key_that_stands_twice_the_last_counts_and_is_held_to_the_rest() -> None:
    better = json.dumps(changed(HONEST, outcome__score__ratio=1.9)["outcome"])
    with pytest.raises(StoreError, match=r"a ratio of 1\.9, its rounds say 0\.9"):
        Document.parse(f'{TEXT[:-1]}, "outcome": {better}}}', "forged.json")
    document = Document.parse(f'{TEXT[:-1]}, "seed": 99}}', "forged.json")
    assert document.text.count('"seed"') == 1 and document.report.seed == 99


def test_rounds_in_another_order_lose_the_signature_and_gain_nothing(path: Path) -> None:
    with Store(path, "create") as store:
        own = json.loads(store.own(tile()).json)
        store.enter(tile())
        backwards = changed(own, measurement__rounds=own["measurement"]["rounds"][::-1])
        with pytest.raises(StoreError, match="was changed after it was signed"):
            Document.parse(json.dumps(backwards), "x")
        claim = Document.parse(json.dumps(without(backwards, "signature")), "x")
        store.enter_documents([claim])
        ((row,),) = [board.rows for board in rank(store.entries(), NOW)]
    assert row.entry.own and row.runs == 1 and row.score == 0.9


ESCAPES = "\x1b]0;title\x07\x1b[2J\u202e\u009b31m"


@pytest.mark.parametrize(
    "place",
    [
        *("submission__author", "submission__name", "device__name", "device__driver"),
        *("device__uuid", "environment__nvrtc", "environment__system", "sanitizing__0__program"),
    ],
)
def test_no_text_of_a_report_acts(place: str) -> None:
    document = parsed(changed(HONEST, **{place: f"a{ESCAPES}b"}))
    assert not {"\x1b", "\x07", "\u202e", "\u009b"} & set(document.text)
    assert all(f"\\u{ord(c):04x}" not in document.text for c in "\x1b\x07")


def leaves(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(data, dict | list):
        items = data.items() if isinstance(data, dict) else enumerate(data)
        return [found for key, value in items for found in leaves(value, (*path, key))]
    return [path]


ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from(["", "Infinity", "NaN", "\x00", "\x1b[2J", "\u202e", "x" * 30_000, [], {}]),
    st.text(max_size=20),
)


@given(st.sampled_from(leaves(HONEST)), ANYTHING)
def test_whatever_is_put_anywhere_is_refused_or_harmless(path: tuple[Any, ...], value: Any) -> None:
    """Refused in one sentence; or else the score is that of the rounds, and can be shown."""
    data = copy.deepcopy(HONEST)
    owner: Any = data
    for step in path[:-1]:
        owner = owner[step]
    owner[path[-1]] = value
    try:
        document = Document.parse(json.dumps(data), "forged.json")
    except StoreError as refused:
        assert "\n" not in str(refused)
        return
    assert (
        document.report.score is None or document.report.score.ratio == 0.9 or path[-1] == "cases"
    )
    entry = Entry.of(document.report, document.id)
    console = SafeConsole(record=True, width=80, file=open("/dev/null", "w"))  # noqa: SIM115
    console.print(screen(rank([entry], NOW), [entry]))
    assert "\x1b" not in console.export_text()


# ------------------------------------------------------------------- several reports of one kernel


def told(*reports: Report, claims: tuple[Report, ...] = (), path: Path) -> list[tuple[Any, ...]]:
    """(standing, name, author, score) of each row; the reports are the board's own."""
    with Store(path, "create") as store:
        for report in reports:
            store.enter(report)
        store.enter_documents([Document.parse(r.model_dump_json(), "claim") for r in claims])
        boards = rank(store.entries(), NOW)
    return [
        (row.standing, row.entry.name, row.entry.author, row.entry.score)
        for board in boards
        for row in (*board.rows, *board.unranked)
    ]


def tile(author: str = "ada", score: float | None = 0.9, **more: Any) -> Report:
    return factory.report("tile", author, score, source=factory.SOURCE, **more)


def rejection(author: str = "ada", day: float = 1, name: str = "tile", **more: Any) -> Report:
    outcome = factory.wrong().outcome
    return factory.report(
        name, author, outcome=outcome, day=day, **{"source": factory.SOURCE, **more}
    )


def test_the_latest_own_verdict_counts(path: Path) -> None:
    assert told(tile(), *(rejection(day=day) for day in range(1, 6)), path=path) == []


def test_what_is_accepted_after_a_rejection_counts_again(path: Path) -> None:
    rows = told(tile(score=1.2), rejection(), tile(score=0.8, day=2), path=path)
    assert rows == [(Standing.RANKED, "tile", "ada", 0.8)]


def test_a_claimed_rejection_removes_nothing(path: Path) -> None:
    forged = (rejection(), rejection("eve"), rejection(name="other"))
    assert told(tile(), claims=forged, path=path) == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_a_claim_that_another_claim_denies_is_disputed_and_first_of_nothing(path: Path) -> None:
    rows = told(claims=(tile(score=1.5), rejection(), factory.report("b", "bob", 0.5)), path=path)
    assert rows == [
        (Standing.RANKED, "b", "bob", 0.5),
        (Standing.DISPUTED, "tile", "ada", 1.5),
    ]


def test_a_claimed_rejection_in_anothers_name_does_not_touch_a_claim(path: Path) -> None:
    rows = told(claims=(tile(), rejection("eve")), path=path)
    assert rows == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_what_the_own_judge_rejected_nobody_can_claim_under_any_name(path: Path) -> None:
    assert told(rejection(), claims=(tile("eve", 2.0, day=2), tile(day=3)), path=path) == []


def test_a_claim_does_not_better_what_the_own_judge_measured(path: Path) -> None:
    claims = (tile(score=1.9, day=1), tile("eve", score=1.9, day=1))
    assert told(tile(), claims=claims, path=path) == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_the_cpu_device_may_reject_and_not_restore(path: Path) -> None:
    on_cpu = rejection().model_copy(update={"device": tile(score=None).device})
    assert told(tile(), on_cpu, tile(score=None, day=2), path=path) == []


def test_a_fault_of_ours_and_a_quick_run_restore_and_reject_nothing(path: Path) -> None:
    ours = factory.our_fault("tile", "ada", day=1)
    assert told(tile(), ours, path=path)[0][0] is Standing.RANKED
    assert told(rejection(day=2), tile(quick=True, day=3), path=path) == []


def test_a_rejection_on_another_gpu_is_that_boards(path: Path) -> None:
    elsewhere = rejection().model_copy(update={"device": tile(gpu="NVIDIA L4").device})
    assert told(tile(), elsewhere, path=path) == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_what_was_accepted_here_on_another_gpu_silences_no_claim(path: Path) -> None:
    rows = told(tile(gpu="NVIDIA L4"), claims=(tile(score=0.8),), path=path)
    assert sorted(score for *_, score in rows) == [0.8, 0.9]


def test_a_rejection_by_another_edition_says_nothing_of_this_one(path: Path) -> None:
    before = rejection(edition=Edition("0.0.1", NOW.cases))
    assert told(tile(), before, path=path) == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_one_code_under_five_names_is_one_row(path: Path) -> None:
    reports = [
        factory.report(f"t{i}", "ada", round(0.9 + i / 100, 2), source=f"// {i}\n{factory.SOURCE}")
        for i in range(5)
    ]
    assert told(*reports, path=path) == [(Standing.RANKED, "t2", "ada", 0.92)]


def test_a_zero_width_space_makes_no_second_author(path: Path) -> None:
    assert len(told(tile(), tile("a\u200bda"), tile("ａｄａ"), path=path)) == 1


@pytest.mark.parametrize(
    "name",
    [
        *("Ada", "ADA", "a\u034fda", "ada\ufe0f", "ada\u3164", "ada\U000e0061", "\u202eada"),
        *("\u0430\u0501\u0430", "\u0410\u0500\u0410", "\uff41da"),
    ],
)
def test_who_looks_like_somebody_is_that_one(name: str, path: Path) -> None:
    rows = told(tile(), tile(name, day=1), path=path)
    assert rows == [(Standing.RANKED, "tile", "ada", 0.9)]


def test_names_of_any_one_alphabet_are_names_and_differ(path: Path) -> None:
    people = ["Zoë", "Иван", "Νίκος", "Հայկ", "李小龙", "さくら ray", "O'Neil Иван", "bob2"]
    reports = [factory.report(f"k{i}", name, 0.5 + i / 10) for i, name in enumerate(people)]
    assert {author for _, _, author, _ in told(*reports, path=path)} == set(people)


def test_a_claim_does_not_spell_anybodys_name(path: Path) -> None:
    assert told(tile(day=1), claims=(tile("ADA"),), path=path)[0][2] == "ada"


def test_an_unsteady_score_is_shown_and_not_ranked_and_pushes_nobody_down(path: Path) -> None:
    rows = told(
        factory.report("wide", "eve", 1.5, half_width=0.9),
        factory.report("a", "ada", 1.0),
        factory.report("b", "bob", 0.8),
        path=path,
    )
    assert rows == [
        (Standing.RANKED, "a", "ada", 1.0),
        (Standing.RANKED, "b", "bob", 0.8),
        (Standing.UNSTEADY, "wide", "eve", 1.5),
    ]
    with Store(path) as store:
        (board,) = rank(store.entries(), NOW)
    assert [row.rank for row in board.rows] == [1, 2]


def test_one_run_is_one_entry_however_its_json_is_written(path: Path) -> None:
    backwards = {key: HONEST[key] for key in reversed(HONEST)}
    kernel = {**HONEST["kernel"], "instructions": {"LDS": 64, "FFMA": 512}}
    elsewhere = {**HONEST, "created": "2026-01-01T13:00:00+01:00", "kernel": kernel}
    shorter = {key: value for key, value in HONEST.items() if value is not None}
    texts = [
        json.dumps(HONEST),
        json.dumps(backwards, indent=4),
        json.dumps(elsewhere, ensure_ascii=True),
        json.dumps(shorter).replace(": 8.0,", ": 8,").replace("0.1,", "1e-1,"),
    ]
    assert len(set(texts)) == 4
    with Store(path, "create") as store:
        entered = store.enter_documents(Document.parse(text, "copy") for text in texts)
        assert entered.new == 1 == len(store.entries())


# ------------------------------------------------------------------------------------- signatures


def test_a_board_knows_its_own_rows_and_says_so(call: Call, path: Path, tmp_path: Path) -> None:
    told(tile(), path=path)
    _, out, _ = call("leaderboard")
    assert "claim" not in out
    claim = tmp_path / "claim.json"
    claim.write_text(factory.report("wide", "bob", 1.3).model_dump_json())
    call("submit", claim)
    _, out, _ = call("leaderboard")
    shown = " ".join(out.split())
    assert "by bob" in shown and "claim" in shown
    assert "1 claim was not graded and signed by this board's own judge" in shown


def test_an_export_keeps_signatures_and_only_the_store_with_the_key_calls_them_own(
    call: Call, path: Path, tmp_path: Path
) -> None:
    told(tile(), path=path)
    lines = tmp_path / "all.jsonl"
    lines.write_text(call("export")[1])
    assert call("import", lines, "--store", tmp_path / "other.sqlite")[0] == 0
    with Store(tmp_path / "other.sqlite") as other:
        assert [entry.own for entry in other.entries()] == [False]
    path.unlink()
    assert call("import", lines)[0] == 0
    with Store(path) as restored:
        assert [entry.own for entry in restored.entries()] == [True]


def test_a_changed_report_loses_its_signature(path: Path) -> None:
    with Store(path, "create") as store:
        data = json.loads(store.own(tile()).json)
    assert Document.parse(json.dumps(data), "x").signature is not None
    data["submission"]["author"] = "eve"
    with pytest.raises(StoreError, match="was changed after it was signed"):
        Document.parse(json.dumps(data), "x")


def test_the_key_is_its_owners_alone(path: Path) -> None:
    told(tile(), path=path)
    key = path.with_suffix(".key")
    assert key.stat().st_mode & 0o077 == 0
    key.write_text("not a key")
    with Store(path) as store, pytest.raises(StoreError, match="signing key, cannot be used"):
        store.enter(tile("bob"))


# ------------------------------------------------------------------------------------------ pages


def test_a_page_that_cannot_be_written_costs_that_page(tmp_path: Path) -> None:
    documents = {d.id: d for d in map(Document.of, (tile(), factory.report("b", "bob", 0.5)))}
    entries = [Entry.of(document.report, id) for id, document in documents.items()]
    broken, whole = documents

    def document(id: str) -> Document:
        if id == broken:
            raise ValueError("a report that nobody thought of\x1b[2J")
        return documents[id]

    site = Site(tmp_path / "site", entries, NOW)
    site.write_boards()
    (failed,) = filter(None, site.write_entries(document))
    assert failed.startswith(f"{broken[:16]}: ValueError: a report that nobody")
    assert "could not be written" in (tmp_path / f"site/entries/{broken[:16]}.html").read_text()
    assert (
        "matrix_multiplication_kernel" in (tmp_path / f"site/entries/{whole[:16]}.html").read_text()
    )


@pytest.mark.parametrize(
    "source",
    [
        "\n" * 60_000,
        " \n" * 500_000,
        "\t" * 100_000 + "x\n",
        "a " * 500_000,
        "/*" * 300_000,
        "#if 0\n" * 100_000,
        '"' * 1_000_000,
        "(" * 1_000_000,
        "x" * 1_000_000,
    ],
    ids=lambda source: repr(source[:6]),
)
def test_any_source_has_its_page_in_time(source: str, tmp_path: Path) -> None:
    """Without its bounds this takes hours."""
    text = factory.SOURCE + source
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    report = rejection()
    submission = report.submission.model_copy(update={"source": text, "sha256": sha256})
    report = report.model_copy(update={"submission": submission})
    document = Document.parse(report.model_dump_json(), "long")
    entry = Entry.of(document.report, document.id)
    site = Site(tmp_path / "site", [entry], NOW)
    assert list(site.write_entries(lambda _: document)) == [None]
    page = tmp_path / "site" / "entries" / f"{entry.short_id}.html"
    assert page.stat().st_size < 3_000_000
    assert page.with_suffix(".cu").read_text() == text


def test_a_measured_report_without_a_device_has_its_page(tmp_path: Path) -> None:
    report = factory.wrong().model_copy(
        update={"device": None, "measurement": factory.report().measurement}
    )
    document = Document.parse(report.model_dump_json(), "x")
    site = Site(tmp_path / "site", [Entry.of(document.report, document.id)], NOW)
    assert list(site.write_entries(lambda _: document)) == [None]
