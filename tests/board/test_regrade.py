"""Regrading shows what changes, enters it only when told to, and loses nothing."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.board.document import Document
from harness.board.entry import Version
from harness.board.ranking import rank
from harness.board.regrade import Change, Grader, as_data, regrade, to_regrade
from harness.board.sqlite_file import FileStore
from harness.protocol import report as protocol
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Submission
from tests.board import factory
from tests.board.conftest import Call, Enter

BEFORE = Version("0.0.1", Version.current().cases)
NEW_SCORES = {"tile": 0.8, "wide": 1.2}


def grading(**facts: Any) -> Grader:
    """Return a grader whose reports have these facts, and otherwise the new scores."""

    def grade(submission: Submission) -> Report:
        how = {"score": NEW_SCORES[submission.name], "day": 30, "source": submission.source} | facts
        return factory.report(submission.name, submission.author, **how)

    return grade


graded = grading()


@pytest.fixture
def old(stored: Enter) -> Path:
    return stored(
        factory.report("tile", "ada", 0.9, version=BEFORE),
        factory.report("wide", "bob", 1.0, version=BEFORE),
        factory.report("new", "eve", 0.5),
    )


def places(path: Path) -> list[tuple[str, float | None]]:
    with FileStore(path) as store:
        (board,) = rank(store.entries())
    return [(row.entry.name, row.entry.score) for row in board.rows]


def test_nothing_is_entered_until_it_is_confirmed(call: Call, old: Path) -> None:
    code, out, _ = call("regrade", grade=graded)
    assert code == 1
    assert "−11.1 %" in out
    assert "+20.0 %" in out
    assert places(old) == [("new", 0.5)]

    kept = old.with_suffix(".regraded.jsonl")
    assert len(kept.read_text().splitlines()) == 2
    code, _, err = call("regrade", grade=graded)
    assert code == 2
    assert "was not entered" in err
    assert call("import", kept)[0] == 0
    assert places(old) == [("wide", 1.2), ("tile", 0.8), ("new", 0.5)]


def test_yes_enters_the_results(call: Call, old: Path) -> None:
    code, out, _ = call("regrade", "--yes", grade=graded)
    assert code == 0
    assert "2 new results entered" in out
    assert places(old) == [("wide", 1.2), ("tile", 0.8), ("new", 0.5)]
    assert not old.with_suffix(".regraded.jsonl").exists()
    assert "Nothing to regrade" in call("regrade")[1]


def test_a_filter_limits_what_is_regraded(call: Call, old: Path) -> None:
    assert "Nothing to regrade" in call("regrade", "--gpu", "L4", grade=graded)[1]


def test_an_interrupted_regrading_keeps_its_reports(call: Call, old: Path) -> None:
    def interrupted(submission: Submission) -> Report:
        if submission.name == "tile":
            raise KeyboardInterrupt
        return graded(submission)

    with pytest.raises(KeyboardInterrupt):
        call("regrade", "--yes", grade=interrupted)
    kept = old.with_suffix(".regraded.jsonl")
    (line,) = kept.read_text().splitlines()
    assert json.loads(line)["submission"]["name"] == "wide"


def test_a_rejection_is_entered_and_settles_the_matter(call: Call, old: Path) -> None:
    rejecting = grading(outcome=protocol.RuntimeFault(stage=protocol.Stage.VERIFY, message="trap"))
    _, out, _ = call("regrade", "--yes", grade=rejecting)
    assert "now runtime-error" in out
    assert "Nothing to regrade" in call("regrade")[1]


HOT = protocol.Accepted(score=protocol.Unscored(reason="throttled", message="the GPU was hot"))
OUR_FAULT = protocol.JudgeError(stage=protocol.Stage.VERIFY, message="the worker vanished")
NOT_HERE = protocol.Unsupported(stage=protocol.Stage.COMPILE, message="an old compiler")
other_gpu = grading(gpu="NVIDIA L4")


def gone(submission: Submission) -> Report:
    raise UsageError("the GPU is taken")


@pytest.mark.parametrize(
    ("grade", "said"),
    [
        (grading(outcome=HOT), "no score this time; regrade it again"),
        (gone, "could not be graded: the GPU is taken"),
        (other_gpu, "this machine has NVIDIA L4"),
        (grading(outcome=OUR_FAULT), "not the submission's fault"),
        (grading(outcome=NOT_HERE), "unsupported: not the submission's fault"),
        (grading(score=None), "this machine has CPU"),
    ],
)
def test_an_unusable_regrading_is_not_entered(
    call: Call, old: Path, grade: Grader, said: str
) -> None:
    code, out, _ = call("regrade", "--yes", grade=grade)
    assert code == 1
    assert said in out
    assert "Nothing to enter" in out
    with FileStore(old) as store:
        assert len(store.entries()) == 3


def test_an_unverified_result_is_graded_here_once(call: Call, path: Path) -> None:
    claim = factory.report("tile", "ada", 2.5)
    with FileStore(path, create=True) as store:
        store.enter_documents([Document.of(claim), Document.of(factory.report("tile", "ada", 2.6))])
    code, out, _ = call("regrade", "--yes", grade=graded)
    assert code == 0 and "−68.0 %" in out
    assert places(path) == [("tile", 0.8)]
    assert "Nothing to regrade" in call("regrade", "--yes")[1]


def test_a_forged_hash_of_the_source_is_corrected(path: Path) -> None:
    claim = factory.report("tile", "ada", 2.5, source=factory.SOURCE)
    true = claim.submission.sha256
    forged = claim.submission.model_copy(update={"sha256": "0" * 64})
    with FileStore(path, create=True) as store:
        store.enter_documents([Document.of(claim.model_copy(update={"submission": forged}))])
        asked: list[str] = []

        def noted(submission: Submission) -> Report:
            asked.append(submission.sha256)
            return graded(submission)

        list(regrade(store, store.entries(), noted, path.with_suffix(".kept")))
    assert asked == [true]


def test_a_result_is_regraded_once_whatever_hashes_it_states(call: Call, path: Path) -> None:
    own = factory.report("wide", "ada", 1.2)
    data = json.loads(factory.report("tile", "ada", 2.5).model_dump_json())
    data["submission"]["sha256"] = own.submission.sha256
    data["kernel"]["program_sha256"] = own.kernel.program_sha256
    with FileStore(path, create=True) as store:
        store.enter(own)
        store.enter_documents([Document.parse(json.dumps(data), "forged")])
    code, out, _ = call("regrade", "--yes", grade=graded)
    assert code == 0 and "−68.0 %" in out
    assert places(path) == [("wide", 1.2), ("tile", 0.8)]
    assert "Nothing to regrade" in call("regrade", "--yes")[1]


def before_and(grade: Grader, path: Path, *entries: str) -> list[Change]:
    """The changes that regrading the entries of these names finds."""
    with FileStore(path) as store:
        found = {entry.name: entry for entry in store.entries()}
        chosen = [found[name] for name in entries]
        return [*regrade(store, chosen, grade, path.with_suffix(".kept"))]


def test_a_board_of_another_gpu_is_tried_once(old: Path) -> None:
    asked: list[str] = []

    def elsewhere(submission: Submission) -> Report:
        asked.append(submission.name)
        return other_gpu(submission)

    first, second = before_and(elsewhere, old, "tile", "wide")
    said = f"needs {factory.H100}; this machine has NVIDIA L4"
    assert (first.why, second.why) == (said, said) and asked == ["tile"]
    assert second.after is None and second.applies is False


def test_programs_get_both_entries(old: Path) -> None:
    changes = [*before_and(graded, old, "tile"), *before_and(gone, old, "wide")]
    first, second = json.loads(json.dumps(as_data(changes)))
    assert {*first} == {"before", "after", "applies", "why"}
    assert (first["before"]["score"], first["after"]["score"]) == (0.9, 0.8)
    assert first["applies"] is True and first["why"] == "larger than the noise"
    assert second["after"] is None and second["why"].startswith("could not be graded")


def test_what_is_unverified_or_of_another_version_is_regraded(old: Path) -> None:
    with FileStore(old) as store:
        boards = rank(store.entries())
        assert {each.name for each in to_regrade(boards, Version.current())} == {"wide", "tile"}
        assert {each.name for each in to_regrade(boards, BEFORE)} == {"new"}
        found = [each._replace(verified=False) for each in store.entries()]
        elsewhere = [each._replace(device="NVIDIA L4") for each in found]
        assert len(to_regrade(rank([*found, *elsewhere]), Version.current())) == 6
