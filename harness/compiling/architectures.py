"""What the GPU architecture that a kernel is compiled for lacks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.protocol.report import Diagnostic

_REQUIRES = re.compile(r"'(?P<feature>[^']+)' requires \.target (?P<arch>sm_\w+)")
_NOT_SUPPORTED = re.compile(
    r"'(?P<feature>[\w.:]+)[^']*' (?:not supported on \.target|cannot be compiled for architecture)"
)
_ABORTED = "Ptx assembly aborted due to errors"
_ONLY_ON = {"wgmma": "sm_90a", "setmaxnreg": "sm_90a", "tcgen05": "sm_100a"}
"""Families of instructions that only some architectures have, by the beginning of their names."""


def number(arch: str) -> int:
    """Return the 90 of sm_90a."""
    return int(arch.removeprefix("sm_").rstrip("af"))


def lacking(errors: Sequence[Diagnostic], arch: str) -> tuple[str, str] | None:
    """Return what the architecture lacks, as a sentence and as the name of the feature, if all of
    ptxas's errors are about that; the feature that the fewest architectures have comes first."""
    found: list[tuple[int, str, str]] = []
    for error in errors:
        if _ABORTED in error.message:
            continue
        match = _REQUIRES.search(error.message) or _NOT_SUPPORTED.search(error.message)
        if match is None:
            return None
        feature = match["feature"]
        if "arch" in match.re.groupindex:
            needed, having = number(match["arch"]), f"{match['arch']} or newer"
        else:
            only = _ONLY_ON.get(feature.partition(".")[0])
            needed, having = (1000, f"{only} only") if only else (999, "other architectures")
        where = f"line {error.line}: " if error.line else ""
        found.append((needed, feature, f"{where}`{feature}` exists on {having}; this is {arch}"))
    if not found:
        return None
    _, feature, sentence = max(found, key=lambda each: each[0])
    return sentence, feature
