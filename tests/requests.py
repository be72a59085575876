"""Short functions for the tests that make requests to a device."""

from harness.judge.grading import launch_inputs
from harness.protocol.device import Count, LaunchInputs, Sanitize
from harness.protocol.report import Tool
from problem.cases import Case, Matrix, Shape
from problem.problem import MATRIX_MULTIPLICATION


def given(shape: Shape) -> LaunchInputs:
    """Return inputs of a launch that are the same every time."""
    A, B = Case(shape).draw(1)
    return inputs_of(shape, A, B)


def inputs_of(
    shape: Shape, A: Matrix, B: Matrix, blocks: tuple[int, ...] | None = None
) -> LaunchInputs:
    return launch_inputs(MATRIX_MULTIPLICATION, Case(shape), (A, B), blocks)


def sanitize_on(*shapes: Shape, seconds: float = 60) -> Sanitize:
    launches = tuple(given(shape) for shape in shapes)
    return Sanitize(launches=launches, tools=tuple(Tool), seconds=seconds)


def count_on(shape: Shape, max_blocks: int, seconds: float = 60) -> Count:
    return Count(inputs=given(shape), max_blocks=max_blocks, seconds=seconds)
