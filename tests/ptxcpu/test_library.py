"""The library without the judge, for any kernel and any buffers."""

import re
from pathlib import Path

import numpy as np
import pytest

from harness import ptxcpu
from harness.protocol.files import cache_directory
from harness.ptxcpu import nvrtc
from harness.ptxcpu.arguments import Buffer, ParameterKind
from harness.ptxcpu.kernel import Kernel
from harness.ptxcpu.results import Hazard
from harness.ptxcpu.runtime.layout import Cause
from tests.ptxcpu.programs import kernel_of

README = Path(ptxcpu.__file__).parent / "README.md"

SCALE = """extern "C" __global__ void scale(const float* x, double* y, float factor, short n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] * factor;
}"""
KINDS = (
    *(ParameterKind.READ_ONLY, ParameterKind.WRITABLE),
    *(ParameterKind.NUMBER, ParameterKind.NUMBER),
)


def translated(source: str, name: str, kinds: tuple[ParameterKind, ...]) -> Kernel:
    output = nvrtc.compile_to_ptx(
        nvrtc.Source(source, f"{name}.cu"), ["-arch=compute_90", "-lineinfo"]
    )
    assert output.succeeded, output.log
    return kernel_of(output.ptx, kinds, name=name)


@pytest.fixture(scope="module")
def scale() -> Kernel:
    return translated(SCALE, "scale", KINDS)


def test_the_example_of_the_readme_prints_a_race(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The library's own cache is another one. To compile the runtime into it takes ten seconds.
    (tmp_path / ".cache").mkdir()
    (tmp_path / ".cache" / "ptxcpu").symlink_to(cache_directory())
    monkeypatch.setenv("HOME", str(tmp_path))
    example = re.search(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert example
    exec(example[1], {})
    assert "race: line 4" in capsys.readouterr().out


def test_buffers_of_any_type_and_numbers_of_any_size(scale: Kernel) -> None:
    x, y = np.arange(70, dtype=np.float32), np.zeros(70)
    result = scale.run((3, 1, 1), [Buffer(x), Buffer(y, writable=True), 2.5, 69])
    assert result.fault is None
    assert y[:69].tolist() == (x * 2.5)[:69].tolist()
    assert y[69] == 0


def test_an_access_outside_a_buffer_names_it(scale: Kernel) -> None:
    x, y = np.arange(64, dtype=np.float32), np.zeros((2, 30))
    result = scale.run(
        (2, 1, 1), [Buffer(x, name="x"), Buffer(y, writable=True, name="y"), 1.0, 61]
    )
    assert result.fault
    assert result.fault.cause is Cause.MEMORY
    assert "y[2][0] of y (2×30), right past its end" in result.fault.message


def test_a_buffer_that_is_not_initialised_is_watched() -> None:
    source = 'extern "C" __global__ void add(float* x) { x[threadIdx.x] += 1.0f; }'
    add = translated(source, "add", (ParameterKind.WRITABLE,))
    x = np.zeros(32, np.float32)
    assert add.check((1, 1, 1), [Buffer(x, writable=True)]).findings == ()
    fresh = Buffer(x, writable=True, initialised=False)
    (found,) = add.check((1, 1, 1), [fresh]).findings
    assert (found.hazard, found.memory, found.index) == (Hazard.UNINITIALISED, "argument 0", (0,))


def test_a_read_only_buffer_stays_as_it_is() -> None:
    source = 'extern "C" __global__ void clear(int n, float* x) { x[threadIdx.x] = n; }'
    kinds = (ParameterKind.NUMBER, ParameterKind.READ_ONLY)
    clear = translated(source, "clear", kinds)
    x = np.ones(32, np.float32)
    assert clear.run((1, 1, 1), [7, Buffer(x)]).changed == (0,)
    assert x.tolist() == [1.0] * 32


def test_arguments_of_other_kinds_are_refused(scale: Kernel) -> None:
    x = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="writable buffer"):
        scale.run((1, 1, 1), [Buffer(x), Buffer(x), 1.0, 4])


def test_every_launch_has_another_grid_number() -> None:
    source = """extern "C" __global__ void number(long long* x) {
        asm volatile("mov.u64 %0, %%gridid;" : "=l"(x[0]));
    }"""
    number = translated(source, "number", (ParameterKind.WRITABLE,))
    x = np.zeros(1, np.int64)
    numbers = []
    for _ in range(3):
        number.run((1, 1, 1), [Buffer(x, writable=True)])
        numbers.append(int(x[0]))
    assert numbers == [numbers[0], numbers[0] + 1, numbers[0] + 2] and numbers[0] > 0


def test_variables_keep_their_values_until_they_are_reset() -> None:
    source = """__device__ float kept = 5;
    extern "C" __global__ void add(float* x) { if (threadIdx.x == 0) x[0] = kept++; }"""
    add = translated(source, "add", (ParameterKind.WRITABLE,))
    x = np.zeros(1, np.float32)
    found = []
    for launch in range(4):
        if launch == 3:
            add.reset_variables()
        add.run((1, 1, 1), [Buffer(x, writable=True)], blocks=(0,))
        found.append(float(x[0]))
    assert found == [5, 6, 7, 5]
