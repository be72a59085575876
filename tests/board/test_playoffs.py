"""How a play-off enters the ranking."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.board import playoffs
from harness.board.document import StoreError
from harness.board.edition import Edition
from harness.board.entry import Entry
from harness.board.ranking import Board, as_data, rank
from harness.devices import available
from harness.judge import playoff as playing
from harness.judge.stages.playoff import Game, Player, PlayOff, differences
from harness.protocol.report import DeviceInfo, Report, Submission
from tests.board import factory
from tests.board.conftest import Call

NOW = Edition.current()


def on(uuid: str, name: str, score: float) -> Entry:
    return factory.entry(name, score=score, source=name, uuid=uuid)


def playoff(
    one: Entry, other: Entry, ratio: float, gpus: Sequence[str] = ("GPU-0", "GPU-1")
) -> PlayOff:
    """In which the first is so many times as fast as the other, on each of these GPUs."""
    measurement = factory.report().measurement
    device = factory.report().device
    assert measurement is not None and device is not None
    slower = tuple(
        each.model_copy(update={"kernel_ms": each.kernel_ms * ratio}) for each in measurement.rounds
    )

    def game(uuid: str) -> Game:
        return Game(device=moved(device, uuid), rounds=(measurement.rounds, slower))

    games = tuple(map(game, gpus))
    return PlayOff(
        judge=NOW.judge,
        cases=NOW.cases,
        created=factory.START,
        players=tuple(
            Player(name=each.name, author=each.author, sha256=each.sha256, code=each.code)
            for each in (one, other)
        ),
        games=games,
        differences=differences(games),
    )


def moved(device: DeviceInfo, uuid: str) -> DeviceInfo:
    return device.model_copy(update={"uuid": uuid})


def places(entries: Sequence[Entry], *played: PlayOff) -> list[tuple[int | None, str]]:
    (board,) = rank(entries, NOW, played=played)
    return [(row.rank, row.entry.name) for row in board.rows]


def board(entries: Sequence[Entry], *played: PlayOff) -> Board:
    (only,) = rank(entries, NOW, played=played)
    return only


A, B = on("GPU-0", "a", 1.0), on("GPU-1", "b", 0.99)


def test_a_play_off_orders_whom_scores_could_not() -> None:
    assert places([A, B]) == [(1, "a"), (1, "b")]
    assert places([A, B], playoff(A, B, 1.01)) == [(1, "a"), (2, "b")]


def test_a_play_off_can_put_the_lower_score_first() -> None:
    made = board([A, B], playoff(B, A, 1.01))
    assert [(row.rank, row.entry.name) for row in made.rows] == [(1, "b"), (2, "a")]
    assert "A play-off on 2026-01-01 found: 1. b, 2. a." in made.said_of_gpus
    (said,) = as_data(made)["playoffs"]
    assert said["differences"][0]["ordered"] == "faster" and "games" not in said


def test_what_is_said_says_how_sure_it_is() -> None:
    found = playoff(A, B, 1.01)
    assert playoffs.said(found).endswith("with more than 99.9 % confidence.")
    (difference,) = found.differences
    barely = found.model_copy(
        update={"differences": (difference.model_copy(update={"confidence": 0.0243}),)}
    )
    assert playoffs.said(barely).endswith("with 97.6 % confidence.")
    sure = difference.model_copy(update={"confidence": playoffs.SURE})
    found = found.model_copy(update={"differences": (sure,)})
    assert playoffs.said(found).endswith("with 99.9 % confidence.")
    assert playoffs.said(playoff(A, B, 1.0)) == "A play-off on 2026-01-01 found: 1. a, 1. b."


def test_a_line_that_is_no_play_off_says_why(tmp_path: Path) -> None:
    path, key = tmp_path / "played.jsonl", tmp_path / "board.key"
    playoffs.enter(playoff(A, B, 1.01), path, key)
    with path.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(StoreError) as error:
        playoffs.read(path, key)
    assert str(error.value) == f"{path}, line 2, is no play-off: Field required; remove it."


def test_what_is_signed_can_be_nothing_else() -> None:
    found = playoff(A, B, 1.01)
    assert playoffs._signed(found) == f"play-off\0{found.model_dump_json()}"


def test_equals_share_a_place_whatever_their_scores() -> None:
    apart = on("GPU-0", "a", 1.0), on("GPU-0", "b", 0.98)
    assert places(apart) == [(1, "a"), (2, "b")]
    assert places(apart, playoff(*apart, 1.0)) == [(1, "a"), (1, "b")]


def test_the_last_of_two_play_offs_counts() -> None:
    assert places([A, B], playoff(A, B, 1.01), playoff(B, A, 1.01)) == [(1, "b"), (2, "a")]


def test_a_play_off_on_one_gpu_counts_where_that_is_all_that_was_seen() -> None:
    alone = playoff(A, B, 1.01, ["GPU-0"])
    assert places([A, B], alone) == [(1, "a"), (1, "b")]
    same = [A, on("GPU-0", "b", 0.999)]
    assert places(same) == [(1, "a"), (1, "b")]
    assert places(same, playoff(*same, 1.01, ["GPU-0"])) == [(1, "a"), (2, "b")]
    assert places(same, playoff(*same, 1.01, ["GPU-7"])) == [(1, "a"), (1, "b")]


def test_another_judges_play_off_does_not_count() -> None:
    old = playoff(A, B, 1.01).model_copy(update={"judge": "0.0.1"})
    assert places([A, B], old) == [(1, "a"), (1, "b")]


def test_what_was_entered_is_read_again(tmp_path: Path) -> None:
    path, key = tmp_path / "s.playoffs.jsonl", tmp_path / "s.key"
    assert playoffs.read(path, key) == [] == playoffs.read(path, None)
    entered = [playoff(A, B, 1.01), playoff(B, A, 1.02)]
    for each in entered:
        playoffs.enter(each, path, key)
    assert playoffs.read(path, key) == entered


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda data: data["playoff"]["players"][0].update(name="eve"), "was not signed"),
        (lambda data: data["signature"].update(key="0" * 64), "was not signed"),
        (lambda data: data["playoff"]["differences"][0].update(percent=9.0), "is no play-off"),
        (lambda data: data.clear(), "is no play-off"),
    ],
)
def test_a_line_that_somebody_changed_is_refused(
    change: Callable[[Any], None], why: str, tmp_path: Path
) -> None:
    path, key = tmp_path / "s.playoffs.jsonl", tmp_path / "s.key"
    playoffs.enter(playoff(A, B, 1.01), path, key)
    playoffs.enter(playoff(A, B, 1.01), path, key)
    first, second = path.read_text().splitlines()
    data = json.loads(second)
    change(data)
    path.write_text(f"{first}\n{json.dumps(data)}\n")
    with pytest.raises(StoreError, match=f"line 2, {why}"):
        playoffs.read(path, key)


def test_the_command_plays_enters_and_ranks(
    call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports = [
        factory.report("a", score=1.0, source="a", uuid="GPU-0"),
        factory.report("b", score=0.999, source="b", uuid="GPU-0"),
    ]
    for each in reports:
        (tmp_path / f"{each.submission.name}.cu").write_text(each.submission.source)
    found = playoff(on("GPU-0", "a", 1.0), on("GPU-0", "b", 0.999), 1.01)

    def play_off(
        submissions: Sequence[Submission],
        gpus: Sequence[str],
        opening: object,
        progress: object,
        graded: Callable[[Report], None],
    ) -> PlayOff:
        assert [each.name for each in submissions] == ["a", "b"] and gpus == ["GPU-1", "GPU-0"]
        for each in reports:
            graded(each)
        return found

    monkeypatch.setattr(playing, "play_off", play_off)
    monkeypatch.setattr(available, "why_no_cuda", lambda: None)
    monkeypatch.setattr(available, "gpus", lambda: ["GPU-0", "GPU-1"])
    files = [tmp_path / "a.cu", tmp_path / "b.cu"]
    code, out, err = call("playoff", "--gpus", "1,0", "--submit", "--json", "-", *files)
    assert code == 0, err
    assert PlayOff.model_validate_json(out) == found
    assert "a is faster" in err and "+1.00 %" in err
    code, out, _ = call("leaderboard", "--json")
    (board,) = json.loads(out)
    assert [(row["rank"], row["name"]) for row in board["rows"]] == [(1, "a"), (2, "b")]
    _, out, _ = call("leaderboard")
    assert "A play-off on 2026-01-01 found: 1. a, 2. b." in " ".join(out.split())
    call("leaderboard", "--site", tmp_path / "site")
    assert "found: 1. a, 2. b" in (tmp_path / "site" / "index.html").read_text()


def test_an_arenas_play_offs_are_called_where_they_count(call: Call, tmp_path: Path) -> None:
    code, _, err = call("playoff", "--submit", "--store", tmp_path, "a.cu", "b.cu")
    assert code == 2
    assert "is an arena, whose play-offs are called on its organiser's page" in err
