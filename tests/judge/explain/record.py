"""Record what the rules see of these solutions and kernels, and then the explanations of all that
are recorded: python3 -m tests.judge.explain.record [NAME ...]"""

import json
import sys

from tests.judge.explain.solutions import KERNELS, RECORDED, SOLUTIONS, evidence_of_source
from tests.judge.explain.test_recorded import EXPLAINED, explanations

if __name__ == "__main__":
    sources = {path.stem: path for folder in (SOLUTIONS, KERNELS) for path in folder.glob("*.cu")}
    for name in sys.argv[1:]:
        evidence = evidence_of_source(sources[name].read_text(encoding="utf-8"))
        values = (evidence.facts, evidence.counters)
        text = "".join(value.model_dump_json(exclude_defaults=True) + "\n" for value in values)
        folder = RECORDED if sources[name].parent == SOLUTIONS else KERNELS
        (folder / f"{name}.jsonl").write_text(text, encoding="utf-8")
    text = json.dumps(explanations(), indent=1, ensure_ascii=False)
    EXPLAINED.write_text(text + "\n", encoding="utf-8")
