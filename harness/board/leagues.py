"""Leagues: which kernels are ranked among themselves, by the cores they use and their launch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from harness.protocol.report import Badge, Value

ALL: Literal["all"] = "all"

_LABELS = {
    Badge.CUDA_CORES: "CUDA cores",
    Badge.TENSOR_CORES: "tensor cores",
    Badge.DEFAULT_LAUNCH: "default launch",
    Badge.DECLARED_LAUNCH: "declared launch",
}

Cores = Literal["all", Badge.CUDA_CORES, Badge.TENSOR_CORES]
Launch = Literal["all", Badge.DEFAULT_LAUNCH, Badge.DECLARED_LAUNCH]


def _each_once(choices: Sequence[str]) -> Sequence[str]:
    if len(set(choices)) < len(choices):
        raise ValueError("each of these is named once")
    return choices


class Leagues(Value):
    """Every choice of cores with every choice of a launch is a league; the first of each is what a
    board shows first. A kernel that is in none of them is not ranked."""

    cores: Annotated[tuple[Cores, ...], Field(min_length=1), AfterValidator(_each_once)] = (
        ALL,
        Badge.CUDA_CORES,
        Badge.TENSOR_CORES,
    )
    launch: Annotated[tuple[Launch, ...], Field(min_length=1), AfterValidator(_each_once)] = (
        ALL,
        Badge.DEFAULT_LAUNCH,
        Badge.DECLARED_LAUNCH,
    )

    def badges(self) -> Iterator[frozenset[str]]:
        """What a kernel of each league has, launches running fastest."""
        for league in product(self.cores, self.launch):
            yield frozenset(badge.value for badge in league if badge != ALL)

    def core_labels(self) -> list[str]:
        return ["all cores" if each == ALL else _LABELS[each] for each in self.cores]

    def launch_labels(self) -> list[str]:
        return ["every launch" if each == ALL else _LABELS[each] for each in self.launch]

    def of_some_cores(self) -> list[int]:
        """The leagues of every launch, one for each kind of cores apart where there are several."""
        single = [place for place, cores in enumerate(self.cores) if cores != ALL]
        return [place * len(self.launch) for place in single or range(len(self.cores))]
