"""The program that compute-sanitizer watches: one launch a shape, exact-size allocations.

`python -m harness.devices.cuda.sanitizer_target JOB.json`
"""

from __future__ import annotations

import sys
from pathlib import Path

import cupy

from harness.devices.cuda import memory
from harness.devices.cuda.findings import Placement
from harness.devices.cuda.loading import load_function
from harness.protocol.compiler import Kernel
from harness.report import Value
from problem.cases import Case, Shape
from problem.launcher import solve


class Job(Value):
    kernel: Kernel
    shapes: tuple[Shape, ...]
    placements: Path
    """Where to write one Placement a line, each before its launch."""


def main(path: Path) -> None:
    job = Job.model_validate_json(path.read_bytes())
    function = load_function(job.kernel)
    kept = []  # freed memory could be handed out again, and two launches share an address
    with open(job.placements, "w", encoding="utf-8") as placements:
        for shape in job.shapes:
            inputs = Case(shape).draw(0)
            A = memory.matrix(shape.M, shape.N)
            B = memory.matrix(shape.N, shape.K)
            C = memory.matrix(shape.M, shape.K)
            kept += [A, B, C]
            A.set(inputs[0])
            B.set(inputs[1])
            place = Placement(shape=shape, A=A.data.ptr, B=B.data.ptr, C=C.data.ptr)
            print(place.model_dump_json(), file=placements, flush=True)
            solve(
                function,
                A,
                B,
                C,
                shape.M,
                shape.N,
                shape.K,
                job.kernel.launch,
                cupy.cuda.runtime.deviceSynchronize,
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
