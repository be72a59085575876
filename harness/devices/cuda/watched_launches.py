"""The program that compute-sanitizer and ncu watch: it launches a kernel again and again.

`python -m harness.devices.cuda.watched_launches RESULTS PROCESS`

It may be started while the kernel is compiled. It creates its context and waits until a job is
given to its folder of results, as long as the process exists that would give it.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path

import cupy
import numpy as np

from harness.devices.cuda import memory
from harness.devices.cuda.errors import CudaError, fault
from harness.devices.cuda.findings import Placement
from harness.devices.cuda.loading import Loaded
from harness.devices.cuda.watched_job import FAULT, JOB, PLACEMENTS, Job, file, given_job
from problem.cases import Matrix
from problem.launcher import solve


def main(results: Path, process: int) -> None:
    with suppress(*CudaError):  # the first launch meets the same error, and says so
        cupy.cuda.runtime.free(0)  # creates the context
    folder = given_job(results, process)
    if folder is None:
        sys.exit("the process that would give the job has ended")
    job = Job.model_validate_json((folder / JOB).read_bytes())
    try:
        _launch_all(job, folder, results)
    except CudaError as error:
        (results / FAULT).write_text(fault(error).model_dump_json(), encoding="utf-8")
        sys.exit(1)


def _launch_all(job: Job, folder: Path, results: Path) -> None:
    loaded = Loaded(job.kernel)
    kept = []  # freed memory could be handed out again, and two launches share an address
    with open(results / PLACEMENTS, "w", encoding="utf-8") as placements:
        for number, shape in enumerate(job.shapes):
            inputs: list[Matrix] = [np.load(file(folder, name, number)) for name in ("A", "B")]
            A = memory.matrix(shape.M, shape.N)
            B = memory.matrix(shape.N, shape.K)
            C = memory.matrix(shape.M, shape.K)
            kept += [A, B, C]
            A.set(inputs[0])
            B.set(inputs[1])
            place = Placement(shape=shape, A=A.data.ptr, B=B.data.ptr, C=C.data.ptr)
            print(place.model_dump_json(), file=placements, flush=True)
            loaded.reset_variables()
            solve(
                loaded.function,
                A,
                B,
                C,
                shape.M,
                shape.N,
                shape.K,
                job.kernel.launch,
                cupy.cuda.runtime.deviceSynchronize,
            )
            for name, matrix in zip("ABC", (A, B, C), strict=True):
                np.save(file(results, name, number), matrix.get())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
