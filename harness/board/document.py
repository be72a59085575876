"""A report as a board keeps it: admitted, in its one form, with its identity."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from harness.board import admission, escaping
from harness.protocol.errors import UsageError
from harness.protocol.report import Report, Signature

MAX_CHARACTERS = 16 << 20
"""Of a report's JSON; the longest that this judge has written has 64 thousand."""


class StoreError(UsageError):
    """The store, or what is to be entered, cannot be used; says what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Document:
    """A report and its canonical text."""

    text: str
    """JSON of the report without its signature: every field, in alphabetical order, no spaces. One
    run has one text, however the file was written that it was read from."""
    report: Report

    @property
    def id(self) -> str:
        """Of its entry: the same report is the same entry everywhere."""
        return identity(self.text)

    @property
    def signature(self) -> Signature | None:
        return self.report.signature

    @property
    def json(self) -> str:
        """What `export` writes and `import` reads."""
        if self.signature is None:
            return self.text
        return f'{self.text[:-1]},"signature":{self.signature.model_dump_json()}}}'

    def signed(self, signature: Signature | None) -> Document:
        return Document(self.text, self.report.model_copy(update={"signature": signature}))

    @classmethod
    def of(cls, report: Report) -> Self:
        """Of this judge's own report. Raises StoreError where it cannot be kept."""
        try:
            return cls._normalised(report)
        except admission.Implausible as error:
            raise StoreError(f"this report cannot be entered: {error}.") from None

    @classmethod
    def parse(cls, text: str, origin: str) -> Document:
        """Read a report from elsewhere. Raises StoreError, naming the origin, where it is none, and
        where it contradicts itself."""
        if len(text) > MAX_CHARACTERS:
            raise StoreError(f"{origin} is larger than any report; `grade --json` writes one.")
        try:
            report = Report.model_validate_json(text)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            reason = f"{place}: {first['msg']}" if place else first["msg"]
            reason = escaping.one_line(reason)[:200]
            raise StoreError(
                f"{origin} is not a report that this judge can read ({reason}); "
                "`grade --json` writes one."
            ) from None
        try:
            document = cls._normalised(report)
        except admission.Implausible as error:
            raise StoreError(f"{origin} cannot be entered: {error}.") from None
        try:
            admission.check(document.report)
        except admission.Implausible as error:
            raise StoreError(
                f"{origin} was changed after it was written, or was never graded: {error}. "
                "Grade the file again."
            ) from None
        return document._vouched(report.signature, origin)

    @classmethod
    def _normalised(cls, report: Report) -> Self:
        report = admission.normalised(report)
        data = json.loads(report.model_dump_json(exclude={"signature"}))
        text = json.dumps(data, separators=(",", ":"), ensure_ascii=False, sort_keys=True)
        return cls(text, report)

    def _vouched(self, signature: Signature | None, origin: str) -> Document:
        from harness.board import signing

        if signature is not None and not signing.fits(signature, self.text):
            raise StoreError(
                f"{origin} was changed after it was signed. Enter the report as it was written."
            )
        return self.signed(signature)


def signed(report: Report, key: Path | None) -> Report:
    """The report with the signature of that key, where there is one: what `grade --json` writes
    beside a store can then be entered as its own."""
    from harness.board.signing import SigningKey

    if key is None or not key.exists():
        return report
    document = Document.of(report)
    return document.signed(SigningKey.at(key).sign(document.text)).report


def identity(text: str) -> str:
    """The id of the entry whose canonical text this is."""
    return hashlib.sha256(text.encode()).hexdigest()
