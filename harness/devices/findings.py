"""Merge findings of the same hazard at the same place."""

from __future__ import annotations

from collections.abc import Iterable

from harness.protocol.report import Finding


def merged(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return one finding for each hazard, line (or pair of lines) and array: the first, with the
    occurrences of all."""
    first: dict[object, Finding] = {}
    for finding in findings:
        lines = frozenset({finding.at.line, finding.other.line if finding.other else None})
        key = (finding.hazard, lines, finding.array)
        known = first.get(key)
        if known is None:
            first[key] = finding
        else:
            occurrences = known.occurrences + finding.occurrences
            first[key] = known.model_copy(update={"occurrences": occurrences})
    return tuple(first.values())
