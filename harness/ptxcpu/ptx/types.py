"""The scalar types of PTX."""

from dataclasses import dataclass
from typing import Literal

Family = Literal["signed", "unsigned", "bits", "float", "predicate"]


@dataclass(frozen=True)
class Type:
    """A PTX type: `f32` has 32 bits in a register and 4 bytes in memory."""

    name: str
    bits: int
    family: Family

    @property
    def bytes(self) -> int:
        return max(1, self.bits // 8)

    @property
    def is_float(self) -> bool:
        return self.family == "float"

    @property
    def is_signed(self) -> bool:
        return self.family == "signed"


def _integers(prefix: str, family: Family) -> list[Type]:
    return [Type(f"{prefix}{n}", n, family) for n in (8, 16, 32, 64)]


TYPES: dict[str, Type] = {
    t.name: t
    for t in [
        *_integers("s", "signed"),
        *_integers("u", "unsigned"),
        *_integers("b", "bits"),
        Type("b128", 128, "bits"),
        Type("pred", 1, "predicate"),
        Type("f16", 16, "float"),
        Type("bf16", 16, "float"),
        Type("f32", 32, "float"),
        Type("f64", 64, "float"),
        Type("f16x2", 32, "float"),
        Type("bf16x2", 32, "float"),
    ]
}
