"""The program that compute-sanitizer watches: it launches a kernel again and again.

`python -m harness.devices.cuda.watched_launches RESULTS PROCESS`

It may be started while the kernel is compiled. It creates its context and waits until a job is
given to its folder of results. It waits as long as the process exists that would give it.
"""

import sys
from contextlib import suppress
from pathlib import Path

import cupy
import numpy as np

from harness.devices.cuda import memory
from harness.devices.cuda.errors import CudaError, fault
from harness.devices.cuda.findings import Placement
from harness.devices.cuda.loading import Loaded
from harness.devices.cuda.watched_job import FAULT, JOB, PLACEMENTS, Job, file, wait_for_job
from problem.launcher import launch


def main(results: Path, process: int) -> None:
    with suppress(*CudaError):  # the first launch meets the same error, and says so
        cupy.cuda.runtime.free(0)  # creates the context
    folder = wait_for_job(results, process)
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
        for number, arguments in enumerate(job.launches):
            buffers = memory.matrices(arguments.buffers)
            kept += buffers
            for buffer, matrix in zip(arguments.inputs, buffers[:-1], strict=True):
                matrix.set(np.load(file(folder, buffer.name, number)))
            addresses = tuple(matrix.data.ptr for matrix in buffers)
            place = Placement(arguments=arguments, addresses=addresses)
            print(place.model_dump_json(), file=placements, flush=True)
            loaded.reset_variables()
            launch(loaded.function, buffers, arguments, job.kernel.launch)
            cupy.cuda.runtime.deviceSynchronize()
            for buffer, matrix in zip(arguments.buffers, buffers, strict=True):
                np.save(file(results, buffer.name, number), matrix.get())


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
