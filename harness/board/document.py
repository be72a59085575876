"""A report in the form in which a board keeps it, with its identity and its signature."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from harness.board import admission, escaping, keys
from harness.board.entry import Entry
from harness.protocol.errors import StoreError, first_mistake
from harness.protocol.report import Report, Signature

MAX_CHARACTERS = 16 << 20
"""The longest JSON of a report; the longest that this judge has written is a 40th of it."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report and its canonical text."""

    text: str
    """The report as JSON without its signature: every field, in alphabetical order, no spaces. So
    one run has one text, regardless of the layout of the file from which it was read."""
    report: Report

    @property
    def id(self) -> str:
        """The id of its entry: the same report is the same entry in every store."""
        return identity(self.text)

    @property
    def signature(self) -> Signature | None:
        return self.report.signature

    @property
    def json(self) -> str:
        """The JSON that `export` writes and `import` reads."""
        if self.signature is None:
            return self.text
        return f'{self.text[:-1]},"signature":{self.signature.model_dump_json()}}}'

    def signed(self, signature: Signature | None) -> Document:
        """Return the document with this signature instead of its own."""
        return Document(self.text, self.report.model_copy(update={"signature": signature}))

    def signed_by(self, key: Path) -> Document:
        """Return the document signed with the key in this file, which is created if missing."""
        return self.signed(keys.SigningKey.at(key).sign(self.text))

    @classmethod
    def of(cls, report: Report) -> Self:
        """Return the document of this judge's own report. Raises StoreError."""
        try:
            report = admission.normalised(report)
        except admission.Inadmissible as error:
            raise StoreError(f"this report cannot be entered: {error}.") from None
        return cls(_canonical(report.model_dump_json()), report)

    @classmethod
    def parse(cls, text: str, origin: str) -> Document:
        """Read a report from elsewhere. Raises StoreError, which names the origin, where it is no
        report or where its signature is that of another text."""
        if len(text) > MAX_CHARACTERS:
            raise StoreError(f"{origin} is larger than any report; `grade --json` writes one.")
        try:
            report = Report.model_validate_json(text)
        except ValidationError as error:
            reason = escaping.one_line(first_mistake(error))[:200]
            raise StoreError(
                f"{origin} is not a report that this judge can read ({reason}); "
                "`grade --json` writes one."
            ) from None
        try:
            document = cls.of(report)
        except StoreError as error:
            raise StoreError(f"{origin}: {error}") from None
        if report.signature is None:
            return document
        candidates = [document]
        if document.report == report.model_copy(update={"signature": None}):
            # An earlier judge wrote and signed a report with fewer fields.
            candidates.append(cls(_canonical(text), document.report))
        for candidate in candidates:
            if keys.fits(report.signature, candidate.text):
                return candidate.signed(report.signature)
        raise StoreError(
            f"{origin} was changed after it was signed. Enter the report as it was written."
        )


def _canonical(text: str) -> str:
    """Return the JSON of a report in its canonical form, without the signature."""
    data = json.loads(text)
    data.pop("signature", None)
    return json.dumps(data, separators=(",", ":"), ensure_ascii=False, sort_keys=True)


def signed(report: Report, key: Path | None) -> Report:
    """Return the report signed with the key in this file, or as it is where there is no key.

    So `grade --json` next to a store writes what that store accepts as its own.
    """
    if key is None or not key.exists():
        return report
    return Document.of(report).signed_by(key).report


def identity(text: str) -> str:
    """Return the id of the entry whose canonical text this is."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Committed:
    path: Path
    document: Document

    @property
    def entry(self) -> Entry:
        return Entry.of(self.document.report, self.document.id)._replace(verified=True)


def read_folder(folder: Path) -> list[Committed]:
    """Return every report of a folder, DIR/GPU/KERNEL.json.

    Raises StoreError if one of these files is not a report. A folder that is named on the
    command line is trusted as a whole: its entries count as verified.
    """
    found = []
    for path in sorted(folder.glob("*/*.json")):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise StoreError(f"{path} cannot be read: {error}.") from None
        found.append(Committed(path, Document.parse(text, str(path))))
    return found
