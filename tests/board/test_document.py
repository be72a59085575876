"""A report's canonical text, to the letter: entries are known by it."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.board.document import Document, StoreError, signed
from harness.board.signing import SigningKey, fits
from tests.board.factory import report


def test_a_text_has_every_field_in_order_and_no_spaces() -> None:
    made = Document.of(report("täle", "ada"))
    data = json.loads(made.text)
    assert [*data] == sorted(data) and [*data["device"]] == sorted(data["device"])
    assert made.text == json.dumps(data, separators=(",", ":"), ensure_ascii=False)
    assert '"name":"täle"' in made.text and "signature" not in data
    assert made.id == hashlib.sha256(made.text.encode()).hexdigest()


def test_a_signature_is_not_kept_in_the_report_itself(tmp_path: Path) -> None:
    made = signed(report(), SigningKeyFile(tmp_path).path)
    assert made.signature is not None
    again = Document.of(made)
    assert again.signature is None and again.report.signature is None
    assert fits(made.signature, again.text)


class SigningKeyFile:
    """A key beside a store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "board.key"
        self.public = SigningKey.at(self.path).public


def test_a_report_is_signed_where_there_is_a_key(tmp_path: Path) -> None:
    made = report()
    assert signed(made, None) is made
    assert signed(made, tmp_path / "none.key") is made and not (tmp_path / "none.key").exists()
    key = SigningKeyFile(tmp_path)
    found = signed(made, key.path)
    assert found.signature is not None and found.signature.key == key.public
    document = Document.parse(found.model_dump_json(), "it")
    assert document.signature == found.signature and document.text == Document.of(made).text


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "Input should be an object"),
        ('{"seed": "x"}', "environment: Field required"),
    ],
)
def test_what_is_no_report_says_where(text: str, reason: str) -> None:
    with pytest.raises(StoreError) as error:
        Document.parse(text, "mine.json")
    assert str(error.value) == (
        f"mine.json is not a report that this judge can read ({reason}); `grade --json` writes one."
    )


def test_a_long_reason_is_cut() -> None:
    data = json.loads(Document.of(report()).text)
    data["counters"]["instructions"] = {"x" * 300: "many"}
    with pytest.raises(StoreError) as error:
        Document.parse(json.dumps(data), "it")
    reason = str(error.value).partition("(")[2].partition(")")[0]
    assert reason == f"counters.instructions.{'x' * 178}"
