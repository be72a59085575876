"""The course quotes the hardware counters that were recorded."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from harness.judge import figures
from harness.protocol.profile import Profile
from lab.explain.records import Recording
from problem.cases import Shape

ROOT = Path(__file__).resolve().parent.parent.parent
WAITS = ("long_scoreboard", "short_scoreboard", "barrier")


SHAPE = Shape(4096, 3072, 2048)


def row(name: str, profile: Profile) -> str:
    """How solutions/README.md shows one profile."""
    shape = profile.shape
    if shape != SHAPE:
        name += f" at {shape.M}x{shape.N}x{shape.K}"
    samples: Counter[str] = Counter()
    for line in profile.lines:
        samples.update(line.stall_samples)
    instructions = sum(line.warp_instructions for line in profile.lines)
    shares = (
        profile.l1_active,
        profile.fma_active,
        profile.tensor_active,
        profile.issue_active,
        *(samples[reason] / samples.total() for reason in WAITS),
    )
    cells = " | ".join(figures.percent(share) for share in shares)
    return f"| {name} | {cells} | {instructions / 1e6:.0f} |"


def test_the_table_of_units_is_what_was_recorded() -> None:
    text = (ROOT / "reports" / "h100-profiles.json").read_text(encoding="utf-8")
    course = (ROOT / "solutions" / "README.md").read_text(encoding="utf-8")
    recording = Recording.model_validate_json(text)
    for name, record in recording.kernels.items():
        (profile,) = record.launches
        assert row(name, profile) in course
