"""Compare two kernels: the differences, and why the newer one is faster or slower."""

from harness.judge import figures
from harness.judge.explain.explanation import Change, Comparison, Explanation

MIN_CHANGE = 0.02
"""A unit whose time changed by a smaller share of the longer estimate is left out."""


def compare(new: Explanation, old: Explanation) -> Comparison:
    """Compare two explanations for the same GPU."""
    before, after = ({each.unit: each.ms for each in e.units} for e in (old, new))
    changes = [
        Change(unit=unit, before_ms=before.get(unit, 0.0), after_ms=after.get(unit, 0.0))
        for unit in before.keys() | after.keys()
    ]
    changes.sort(key=lambda each: (-abs(each.after_ms - each.before_ms), each.unit))
    longest = max(old.estimated_ms or 0.0, new.estimated_ms or 0.0)
    rules_before, rules_after = ([each.rule for each in e.findings] for e in (old, new))
    return Comparison(
        name=old.name,
        before_ms=old.estimated_ms,
        after_ms=new.estimated_ms,
        why=_why(new, old),
        units=tuple(
            each for each in changes if abs(each.after_ms - each.before_ms) >= MIN_CHANGE * longest
        ),
        occupancy=(old.occupancy.fraction, new.occupancy.fraction),
        registers=(old.resources.registers, new.resources.registers),
        solved=tuple(rule for rule in rules_before if rule not in rules_after),
        new=tuple(rule for rule in rules_after if rule not in rules_before),
    )


def _why(new: Explanation, old: Explanation) -> str:
    if old.estimated_ms is None or new.estimated_ms is None:
        uncounted = old if old.estimated_ms is None else new
        return f"{uncounted.name} could not be counted, so the two cannot be compared"
    ratio = old.estimated_ms / new.estimated_ms
    verdict = f"should be {ratio:.2f}× as fast"
    if ratio < 1:
        verdict = f"should take {1 / ratio:.2f}× as long"
    if abs(ratio - 1) < MIN_CHANGE:
        verdict = "should be equally fast"
    one, other = old.units[0], new.units[0]
    if one.unit is other.unit:
        limit = (
            f"{one.unit} limits both, and is busy for {figures.milliseconds(other.ms)} ms "
            f"in place of {figures.milliseconds(one.ms)}"
        )
    else:
        limit = (
            f"{one.unit} limited {old.name} ({figures.milliseconds(one.ms)} ms); now "
            f"{other.unit} does ({figures.milliseconds(other.ms)} ms)"
        )
    return f"{new.name} {verdict}: {limit}"
