"""Short functions for the tests that compile kernels and run them on the CPU device."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.devices.cpu.device import CpuDevice
from harness.protocol.device import Finished, Ready, Run, Sanitized
from harness.protocol.report import Counters, Finding, Hazard, LineCounters, Unsupported
from harness.protocol.request import Fault
from problem.cases import Matrix, Shape
from tests.compiled import compiled
from tests.requests import count_on, inputs_of, sanitize_on

KERNELS = Path(__file__).parent / "kernels"


def line_of(name: str, text: str) -> int:
    """Return the line of a kernel that contains `text`."""
    lines = (KERNELS / f"{name}.cu").read_text().splitlines()
    return next(i for i, line in enumerate(lines, 1) if text in line)


def quantities(line: LineCounters) -> tuple[int, ...]:
    """Return what the hardware counts of a line, too."""
    shared = line.shared_wavefronts, line.shared_min_wavefronts
    return line.global_sectors, line.global_passes, *shared


def inputs(shape: Shape) -> tuple[Matrix, Matrix]:
    random = np.random.default_rng([shape.M, shape.N, shape.K])
    A = random.uniform(-1, 1, (shape.M, shape.N)).astype(np.float32)
    B = random.uniform(-1, 1, (shape.N, shape.K)).astype(np.float32)
    return A, B


def product(A: Matrix, B: Matrix) -> np.ndarray:
    return A.astype(np.float64) @ B.astype(np.float64)


@dataclass
class Runner:
    """A CPU device with one kernel loaded, and short methods for requests to it."""

    device: CpuDevice

    def load(self, source: str, block: tuple[int, int, int] = (16, 16, 1)) -> Ready:
        kernel = compiled(source)
        answer = self.device.load_ptx(kernel.ptx, kernel.entry, kernel.launch, block)
        assert isinstance(answer, Ready), answer
        return answer

    def load_file(self, name: str, block: tuple[int, int, int] = (16, 16, 1)) -> Ready:
        return self.load((KERNELS / f"{name}.cu").read_text(), block)

    def refusal(self, name: str) -> Unsupported:
        """Load a kernel, which must be refused."""
        kernel = compiled((KERNELS / f"{name}.cu").read_text())
        answer = self.device.load_ptx(kernel.ptx, kernel.entry, kernel.launch)
        assert isinstance(answer, Unsupported), answer
        return answer

    def multiply(self, shape: Shape, A: Matrix, B: Matrix) -> Matrix:
        """Run the kernel, which must finish, on these matrices."""
        result = self.device.run(Run(inputs=inputs_of(shape, A, B), seconds=30))
        assert not isinstance(result, Fault), result.message
        return result.output

    def run(
        self, shape: Shape, blocks: tuple[int, ...] | None = None, seconds: float = 20.0
    ) -> Finished | Fault:
        A, B = inputs(shape)
        return self.device.run(Run(inputs=inputs_of(shape, A, B, blocks), seconds=seconds))

    def finish(self, shape: Shape) -> Finished:
        """Run the kernel, which must finish."""
        result = self.run(shape)
        assert not isinstance(result, Fault), result.message
        return result

    def fault(self, shape: Shape, seconds: float = 20.0) -> Fault:
        """Run the kernel, which must fault."""
        result = self.run(shape, seconds=seconds)
        assert isinstance(result, Fault)
        return result

    def error(self, shape: Shape) -> float:
        """Return the largest difference from the float64 product."""
        C = self.finish(shape).output
        return float(np.abs(C - product(*inputs(shape))).max())

    def findings(self, *shapes: Shape) -> tuple[Finding, ...]:
        answer = self.device.sanitize(sanitize_on(*shapes))
        assert isinstance(answer, Sanitized), answer
        for run in answer.runs:
            assert (run.status == "found") == any(f.tool is run.tool for f in answer.findings)
        return answer.findings

    def finding(self, shape: Shape, hazard: Hazard) -> Finding:
        """Return the first finding of this kind, of which there must be one."""
        findings = self.findings(shape)
        found = [each for each in findings if each.hazard is hazard]
        assert found, findings
        return found[0]

    def count(self, shape: Shape, blocks: int = 1 << 20) -> Counters:
        answer = self.device.count(count_on(shape, blocks))
        assert isinstance(answer, Counters), answer
        return answer

    def count_one_block(self, shape: Shape) -> Counters:
        """Return the counters of the first block alone."""
        return self.count(shape, blocks=1)
