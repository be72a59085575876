"""The parameters of a kernel: input buffers, one output buffer, then numbers."""

from dataclasses import dataclass

from problem.cases import Shape


@dataclass(frozen=True, slots=True)
class Signature:
    """A kernel's name and parameters. Buffers are float32, numbers are int, and the order is
    fixed."""

    kernel: str
    inputs: tuple[str, ...]
    output: str
    numbers: tuple[str, ...]

    @property
    def text(self) -> str:
        """The parameters as written in the kernel's declaration."""
        inputs = (f"const float* {name}" for name in self.inputs)
        numbers = (f"int {name}" for name in self.numbers)
        return ", ".join((*inputs, f"float* {self.output}", *numbers))

    @property
    def types(self) -> tuple[str, ...]:
        """The type of each parameter, without `const`."""
        return ("float*",) * (len(self.inputs) + 1) + ("int",) * len(self.numbers)

    @property
    def pointer_types(self) -> tuple[tuple[str, ...], ...]:
        """The types of the parameters, with and without `const` at the inputs."""
        others = self.types[len(self.inputs) :]
        return tuple((f"{const}float*",) * len(self.inputs) + others for const in ("const ", ""))


@dataclass(frozen=True, slots=True)
class Buffer:
    """A row-major float32 matrix in a device's memory."""

    name: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a launch at one shape, in the order of the kernel's parameters."""

    shape: Shape
    inputs: tuple[Buffer, ...]
    output: Buffer
    numbers: tuple[int, ...]

    @property
    def buffers(self) -> tuple[Buffer, ...]:
        return (*self.inputs, self.output)


SIGNATURE = Signature("matrix_multiplication_kernel", ("A", "B"), "C", ("M", "N", "K"))
