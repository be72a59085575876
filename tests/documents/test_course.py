"""The course quotes the hardware counters that were recorded."""

from __future__ import annotations

import json
from pathlib import Path

from harness import figures
from harness.protocol.profile import Profile

ROOT = Path(__file__).resolve().parent.parent.parent


def row(name: str, profile: Profile) -> str:
    """How solutions/README.md shows one profile."""
    samples = sum(line.samples for line in profile.lines)
    waiting = sum(line.stall_samples.get("long_scoreboard", 0) for line in profile.lines)
    shares = (
        profile.l1_active,
        profile.fma_active,
        profile.tensor_active,
        profile.issue_active,
        waiting / samples,
    )
    return f"| {name} | " + " | ".join(figures.percent(share) for share in shares) + " |"


def test_the_table_of_units_is_what_was_recorded() -> None:
    recorded = json.loads((ROOT / "reports" / "h100-profiles.json").read_text(encoding="utf-8"))
    course = (ROOT / "solutions" / "README.md").read_text(encoding="utf-8")
    for name, profile in recorded.items():
        assert row(name, Profile.model_validate_json(json.dumps(profile))) in course
