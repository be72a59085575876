"""The errors of a kernel on one kind of inputs, and its accuracy grade."""

from dataclasses import dataclass
from enum import StrEnum


class Grade(StrEnum):
    """How accurate a kernel is, as problem/accuracy.py defines it."""

    A = "A"
    B = "B"
    C = "C"


@dataclass(frozen=True, slots=True)
class Errors:
    """The worst errors of one C.

    block: by the block rule. by_rows: |C - R|_ij / (‖a_i‖₂ ‖b_j‖₂). by_components:
        |C - R| / (|A| |B|).
    """

    block: float
    by_rows: float
    by_components: float
