"""One rule: a result counts if the board's own key or a listed key signed it."""

import copy
import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.board import keys
from harness.board.document import Document
from harness.board.keys import SigningKey
from harness.board.ranking import Board, rank
from harness.board.sqlite_file import FileStore
from harness.board.store import Store
from harness.protocol.errors import StoreError
from harness.protocol.report import Report
from tests.board import factory
from tests.board.conftest import Call

Json = dict[str, Any]
OWN = factory.report("tile", "ada", 0.753, source=factory.SOURCE)
REJECTED = factory.report("bad", "bob", outcome=factory.wrong().outcome, source="bad")


def forged(**changes: Any) -> Json:
    """A report of the own kernel with a score of 8.3."""
    data = json.loads(OWN.model_dump_json())
    data["outcome"]["score"] |= {"ratio": 8.3, "low": 8.29, "high": 8.31}
    data["submission"]["author"] = "eve"
    for path, value in changes.items():
        factory.replace_at(data, path, value)
    return data


def with_source(source: str) -> Json:
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    return {"submission__source": source, "submission__sha256": sha256}


FORGERIES: dict[str, Json] = {
    "the same program with a comment": forged(**with_source(f"// mine\n{factory.SOURCE}")),
    "the same file": forged(),
    "what the own judge rejected": forged(**with_source("bad")),
    "what it rejected, with a comment": forged(**with_source("bad // mine")),
    "another program's hash": forged(kernel__program_sha256="0" * 64),
    "no program's hash": forged(kernel__program_sha256=None),
    "another's name": forged(submission__author="ada"),
    "one round": forged(measurement__rounds=lambda rounds: rounds[:1]),
    "a score that no round gives": forged(outcome__score__ratio=1e9),
    "a later version of the judge": forged(environment__judge="99.0.0", environment__cases=99),
    "a rejection of the own kernel": json.loads(
        factory.report(
            "tile", "ada", outcome=factory.wrong().outcome, source=factory.SOURCE, day=9
        ).model_dump_json()
    ),
}


def ranked(store: Store) -> list[tuple[str, str, float | None, int | None]]:
    (board,) = boards(store)
    return [(row.entry.name, row.entry.author, row.entry.score, row.rank) for row in board.rows]


def boards(store: Store) -> tuple[Board, ...]:
    return rank(store.entries())


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, Board]]:
    """A store with results of its own judge, and its board before anything is forged."""
    with FileStore(tmp_path_factory.mktemp("board") / "board.sqlite", create=True) as store:
        store.enter(OWN)
        store.enter(REJECTED)
        (board,) = boards(store)
        yield store, board


@pytest.mark.parametrize("signed", [False, True], ids=["unsigned", "signed by a stranger"])
@pytest.mark.parametrize("data", FORGERIES.values(), ids=FORGERIES.keys())
def test_a_forgery_has_no_rank_and_changes_no_row(
    data: Json, signed: bool, honest: tuple[Store, Board], tmp_path: Path
) -> None:
    store, before = honest
    document = Document.parse(json.dumps(data), "forged")
    if signed:
        document = document.signed(SigningKey.at(tmp_path / "a.key").sign(document.text))
    store.enter_documents([document])
    (after,) = boards(store)
    assert replace(after, unverified=()) == before
    assert {(row.rank, row.status) for row in after.unverified} <= {(None, "unverified")}


def test_a_listed_key_verifies_until_it_is_removed(path: Path, call: Call) -> None:
    lab = SigningKey.at(path.with_name("lab.key"))
    document = Document.of(factory.report("wide", "bob", 1.3))
    with FileStore(path, create=True) as store:
        store.enter(OWN)
        store.enter_documents([document.signed(lab.sign(document.text))])
        assert ranked(store) == [("tile", "ada", 0.753, 1)]
        code, out, _ = call("keys", "--trust", lab.public, "--owner", "the lab")
        assert code == 0 and f"{lab.public}  the lab" in out
        assert ranked(store) == [("wide", "bob", 1.3, 1), ("tile", "ada", 0.753, 2)]
        assert "the lab" in call("keys", "--trust", lab.public)[1], "it keeps its owner"
        assert call("keys", "--distrust", lab.public)[0] == 0
        assert ranked(store) == [("tile", "ada", 0.753, 1)]
    for words in (("--trust", "not a key"), ("--distrust", "0" * 64), ("--owner", "lab")):
        code, _, error = call("keys", *words)
        assert code == 2 and error.count("\n") == 1


def test_commands_believe_the_key_that_they_are_given(path: Path, call: Call) -> None:
    other = path.with_name("other.key")
    for key in (None, other):
        with FileStore(path, create=True, key=key) as store:
            id = store.enter(OWN)
    with FileStore(path, key=other) as store:
        store.enter(factory.report("wide", "bob", 1.3))
    assert "Unverified results" in call("leaderboard")[1]
    assert "Unverified results" not in call("leaderboard", "--key", other)[1]
    assert "Nothing to regrade" in call("regrade", "--key", other)[1]
    for key in (path.with_suffix(".key"), other):
        exported = json.loads(call("export", id, "--key", key)[1])
        assert exported["signature"]["key"] == SigningKey.at(key).public


def test_the_list_is_lines_of_a_key_and_a_name(tmp_path: Path) -> None:
    key = tmp_path / "board.key"
    one, other = "1" * 64, "a" * 64
    (tmp_path / "board.trusted").write_text(f"# ours\n{one} the lab\n\n{other}\n")
    assert keys.listed(key) == {one: "the lab", other: ""}
    assert keys.trusted(key) == {one, other}
    own = SigningKey.at(key).public
    assert keys.trusted(key) == {one, other, own}
    (tmp_path / "board.trusted").write_text(f"{one}\nnonsense\n")
    with pytest.raises(StoreError, match="line 2, is no public key"):
        keys.listed(key)


def test_a_key_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "board.key"
    first, again = SigningKey.at(path), SigningKey.at(path)
    assert first.public == again.public and path.stat().st_mode & 0o777 == 0o600
    assert [*tmp_path.iterdir()] == [path]
    signature = first.sign("a text")
    assert keys.fits(signature, "a text") and not keys.fits(signature, "another")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o666])
def test_a_key_that_others_may_read_is_refused(path: Path, mode: int) -> None:
    with FileStore(path, create=True) as store:
        store.enter(OWN)
        key = path.with_suffix(".key")
        key.chmod(mode)
        for use in (store.entries, lambda: store.enter(OWN)):
            with pytest.raises(StoreError, match=f"others may read it; run: chmod 600 {key}"):
                use()
        key.chmod(0o600)
        assert len(store.entries()) == 1
        key.write_text("not a key")
        with pytest.raises(StoreError, match="cannot be used"):
            store.enter(OWN)


def test_a_changed_report_loses_its_signature(path: Path) -> None:
    with FileStore(path, create=True) as store:
        data = json.loads(store.own(OWN).json)
    assert Document.parse(json.dumps(data), "x").signature is not None
    for change in ({"seed": 99}, {"submission": data["submission"] | {"author": "eve"}}):
        with pytest.raises(StoreError, match="was changed after it was signed"):
            Document.parse(json.dumps(copy.deepcopy(data) | change), "x")
    data["submission"]["author"] = "a\u200bda"  # no name that a board keeps, even if it is signed
    del data["signature"]
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    signature = SigningKey.at(path.with_suffix(".key")).sign(text).model_dump()
    with pytest.raises(StoreError, match="was changed after it was signed"):
        Document.parse(json.dumps(data | {"signature": signature}), "x")


def test_a_report_that_an_earlier_judge_signed_keeps_its_signature(path: Path) -> None:
    """It lacks fields that this judge writes, and has some that this judge drops."""
    key = SigningKey.at(path.with_suffix(".key"))
    data = json.loads(Document.of(OWN).text)
    del data["printed"], data["kernel"]["loops"]
    data["device"]["memory_bytes"], data["measurement"]["warm_up_launches"] = 80 << 30, 40
    text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
    data["signature"] = json.loads(key.sign(text).model_dump_json())
    document = Document.parse(json.dumps(data), "earlier.json")
    assert document.text == text and document.signature is not None
    with FileStore(path, create=True) as store:
        store.enter_documents([document])
        assert ranked(store) == [("tile", "ada", 0.753, 1)]
        assert store.document(document.id).json == document.json


def test_a_folder_of_reports_is_trusted_as_it_is_named(call: Call, tmp_path: Path) -> None:
    folder = tmp_path / "reports" / "h100"
    folder.mkdir(parents=True)
    (folder / "tile.json").write_text(OWN.model_dump_json())
    code, out, _ = call("leaderboard", "--reports", tmp_path / "reports")
    assert code == 0 and "0.753" in out and "Unverified" not in out


def test_the_terminal_shows_unverified_results_apart(call: Call, path: Path) -> None:
    claim: Report = factory.report("wide", "bob", 1.3)
    with FileStore(path, create=True) as store:
        store.enter(OWN)
        store.enter_documents([Document.of(claim)])
    _, out, _ = call("leaderboard")
    above, _, below = out.partition("Unverified results")
    assert "tile" in above and "wide" not in above and "wide" in below
    assert "regrade" in below
