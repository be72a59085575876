"""Many launches of one kernel in one process, at random sizes, each verified.

Kernels that keep counters or buffers between launches must survive every launch before.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.judge.workers.isolation import Role
from harness.judge.workers.worker import Worker
from harness.protocol.compiler import Compiled
from harness.protocol.device import Load, Ready, Run
from harness.protocol.request import Fault
from problem.cases import Case, Shape, drawn_kind
from problem.reference import compare
from tests.compile_worker import Compiling
from tests.requests import inputs_of

ROOT = Path(__file__).resolve().parent.parent.parent.parent
SOLUTIONS = sorted((ROOT / "solutions").glob("*.cu"))
LAUNCHES = int(os.environ.get("MATMUL_ARENA_SOAK", "20"))


def random_case(generator: np.random.Generator) -> Case:
    """Sizes from 1 to some 1000, more small ones than large ones."""
    sizes = (int(np.exp2(generator.uniform(0, 10))) for _ in range(3))
    return Case(Shape(*sizes), str(drawn_kind(generator)))


@pytest.mark.gpu
@pytest.mark.parametrize("path", SOLUTIONS, ids=lambda path: path.stem)
def test_every_launch_of_many_is_right(
    compiling: Compiling, path: Path, record_property: Callable[[str, object], None]
) -> None:
    compiled = compiling(path.read_text(encoding="utf-8"))
    assert isinstance(compiled, Compiled)
    generator = np.random.default_rng(0)
    worst = 0.0
    with Worker(Role.CUDA) as device:
        assert isinstance(device.ask(Load(kernel=compiled.kernel)), Ready)
        process = device.process_id
        for number in range(LAUNCHES):
            case = random_case(generator)
            A, B = case.draw(number)
            answer = device.ask(Run(inputs=inputs_of(case.shape, A, B), seconds=20))
            assert not isinstance(answer, Fault), (case, answer)
            found = compare(A, B, answer.output, tolerance=case.tolerance)
            assert found.passed, (number, case, found.worst)
            if not case.exact:
                worst = max(worst, found.worst)
        assert device.process_id == process
        record_property("launches", LAUNCHES)
        record_property("worst block", f"{worst:.2g}")
