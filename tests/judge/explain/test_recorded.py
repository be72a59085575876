"""The explanations of kernels whose evidence is recorded change only on purpose."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.judge.explain.compare import compare
from harness.judge.explain.explain import explain
from harness.judge.explain.explanation import Explanation
from harness.judge.explain.rules import RULES, advice
from tests.judge.explain.solutions import KERNELS, RECORDED, examined, recorded

EXPLAINED = Path(__file__).with_name("explained.json")
"""The explanations, which a person has read: python3 -m tests.judge.explain.record writes them."""


def names() -> list[str]:
    return sorted(path.stem for folder in (RECORDED, KERNELS) for path in folder.glob("*.jsonl"))


def explained(name: str) -> Explanation:
    evidence = recorded(name)
    return explain(examined(evidence, blocks_depend=evidence.counters.blocks_depend))


def told(name: str) -> dict[str, Any]:
    """Return the figures and the findings of an explanation, and how it compares with another."""
    found, naive = explained(name), explained("01_naive")
    lines = sorted((line for line in found.lines if line.cost), key=lambda line: -(line.cost or 0))
    values = found.model_dump(
        mode="json", include={"waves", "tail", "estimated_ms", "mix", "loop", "findings", "notes"}
    )
    values["units"] = {each.unit: each.ms for each in found.units}
    values["roofs"] = {each.name: [each.tflops, each.intensity] for each in found.roofs}
    values["dearest"] = [line.model_dump(mode="json") for line in lines[:3]]
    values["against"] = compare(found, naive).why
    each_alone = (advice(recorded(name), (rule,)) for rule in RULES)
    values["gains"] = {each.rule: each.gain for alone in each_alone for each in alone}
    return values


def flat(value: Any, path: str = "") -> dict[str, Any]:
    """Return the numbers and texts of nested values by their paths."""
    if not isinstance(value, dict | list):
        return {} if value is None else {path: value}
    items = value.items() if isinstance(value, dict) else enumerate(value)
    return {at: x for key, each in items for at, x in flat(each, f"{path}/{key}").items()}


def explanations() -> dict[str, dict[str, Any]]:
    """Return all explanations, with four figures of each number."""
    return {
        name: {
            path: float(f"{x:.4g}") if isinstance(x, float) else x
            for path, x in flat(told(name)).items()
        }
        for name in names()
    }


@pytest.mark.parametrize("name", names())
def test_an_explanation_changes_only_on_purpose(name: str) -> None:
    expected = json.loads(EXPLAINED.read_text(encoding="utf-8"))[name]
    assert flat(told(name)) == {
        path: pytest.approx(x, rel=1e-3) if isinstance(x, float) else x
        for path, x in expected.items()
    }
