"""What makes times on this GPU less steady than on one that does nothing else."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the driver says of the GPU, and what runs around it."""

    drives_display: bool = False
    drawing_programs: int = 0
    """Programs that use the GPU for graphics."""
    ends_long_kernels: bool = False
    """The driver ends kernels after some seconds, so that the display does not freeze."""
    wsl: bool = False
    """Windows Subsystem for Linux, whose driver lacks some of what Linux has."""


def notes(around: Surroundings) -> tuple[str, ...]:
    """What that means for verdicts and scores, a sentence each."""
    found = []
    if around.drives_display or around.drawing_programs:
        found.append(
            "this GPU also draws a screen, so its scores are less steady: to compare them with "
            "those of others, end the desktop session or grade on another GPU"
        )
    if around.ends_long_kernels:
        found.append(
            "the driver of this GPU ends a kernel after some seconds, because it draws a screen: "
            "a slow kernel gets the verdict time-limit sooner than elsewhere"
        )
    if around.wsl:
        found.append(
            "this is WSL 2, where launches wait for Windows and the driver tells less of clocks "
            "and power: verdicts hold, scores are less steady than under Linux"
        )
    return tuple(found)
