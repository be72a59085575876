"""Record what the rules see of large kernels: python3 -m tests.judge.explain.record [NAME ...]"""

import sys

from tests.judge.explain.solutions import RECORDED, SOLUTIONS, evidence_of

if __name__ == "__main__":
    RECORDED.mkdir(exist_ok=True)
    for name in sys.argv[1:] or sorted(path.stem for path in SOLUTIONS.glob("*.cu")):
        evidence = evidence_of(name)
        values = (evidence.facts, evidence.counters)
        text = "".join(value.model_dump_json(exclude_defaults=True) + "\n" for value in values)
        (RECORDED / f"{name}.jsonl").write_text(text, encoding="utf-8")
