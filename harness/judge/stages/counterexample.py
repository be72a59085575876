"""Explain a wrong output: the worst elements, a map of wrong blocks, and the likely mistake."""

import math

import numpy as np
from numpy.typing import NDArray

from harness.devices.guards import unwritten
from harness.judge.grading import Compared
from harness.protocol.report import BlockMap, Counterexample, Element, RunStage, WrongAnswer
from problem.hints import close
from problem.inputs import Matrix, Tolerance
from problem.problem import Inputs, Problem
from problem.reference import BLOCK_SIZE, Comparison

MAX_ELEMENTS = 5
MAP_ROWS, MAP_COLUMNS = 20, 64
"""Most characters down and across a map."""

Blocks = NDArray[np.bool_]


@np.errstate(invalid="ignore", over="ignore")  # C and the reference may have infinities
def wrong_answer(problem: Problem, stage: RunStage, seed: int, compared: Compared) -> WrongAnswer:
    """Return the verdict for an output whose error is above the limit. seed: of the grading."""
    case, inputs, output, comparison, corner = compared
    wrong, error = comparison.wrong, f"{comparison.worst:.3g}"
    whole = problem.arguments(case.shape).output
    is_part = output.shape != (whole.rows, whole.columns)
    found = Counterexample(
        case=case,
        seed=seed,
        error=comparison.worst,
        worst_block=comparison.worst_block,
        wrong_blocks=int(wrong.sum()),
        blocks=wrong.size,
        elements=_elements(problem, compared),
        map=block_map(wrong),
        pattern=pattern(problem, inputs, output, comparison, corner if is_part else None),
    )
    if comparison.tolerance is Tolerance.EXACT:
        limit = f"must be exact, found an error of {error}"
    else:
        limit = f"error at most {comparison.limit:g}, found {error}"
    message = f"wrong at {case} ({limit}): {found.pattern}"
    return WrongAnswer(stage=stage, message=message, counterexample=found)


def _elements(problem: Problem, compared: Compared) -> tuple[Element, ...]:
    """Return the worst elements of the worst block, the worst first, without those whose error is
    small compared with that of the worst."""
    block = [BLOCK_SIZE * place for place in compared.comparison.worst_block]
    rows, columns = (slice(start, start + BLOCK_SIZE) for start in block)
    top, left = (first + start for first, start in zip(compared.corner, block, strict=True))
    inputs = problem.part(compared.inputs, rows, columns)
    R = problem.reference(inputs)
    found = compared.output[rows, columns]
    distance = np.abs(found - R)
    distance[~np.isfinite(distance)] = np.inf
    distance[~np.isfinite(found) & ~np.isfinite(R)] = 0
    if compared.comparison.tolerance is Tolerance.STRUCTURED:  # each element has a limit of its own
        for i, j in np.argwhere(distance > 0):
            one = slice(i, i + 1), slice(j, j + 1)
            part = problem.part(inputs, *one)
            distance[i, j] = problem.compare(compared.case, part, found[one]).worst
    order = np.argsort(-distance, axis=None, kind="stable")[:MAX_ELEMENTS]
    worst = (divmod(int(index), found.shape[1]) for index in order)
    return tuple(
        Element(row=top + i, column=left + j, expected=float(R[i, j]), found=float(found[i, j]))
        for i, j in worst
        if distance[i, j] > 0 and distance[i, j] >= distance.max() / 1000
    )


def block_map(wrong: Blocks) -> BlockMap:
    """Draw the wrong blocks; a character stands for several if there are many."""
    scale = max(-(-wrong.shape[0] // MAP_ROWS), -(-wrong.shape[1] // MAP_COLUMNS))
    rows = []
    for top in range(0, wrong.shape[0], scale):
        cells = (
            wrong[top : top + scale, left : left + scale].any()
            for left in range(0, wrong.shape[1], scale)
        )
        rows.append("".join("#" if cell else "." for cell in cells))
    return BlockMap(rows=tuple(rows), scale=scale)


def pattern(
    problem: Problem,
    inputs: Inputs,
    output: Matrix,
    comparison: Comparison,
    corner: tuple[int, int] | None = None,
) -> str:
    """Return the likely mistake in one sentence, from the values and then from their places.

    corner: the first row and column, if only a part of the output was compared.
    """
    values = _values(problem, inputs, output, comparison)
    if corner is not None:
        return f"{values}; only the part from row {corner[0]}, column {corner[1]} on was compared"
    return f"{values}; {_places(comparison.wrong, output.shape, problem.signature.output)}"


def _values(problem: Problem, inputs: Inputs, output: Matrix, comparison: Comparison) -> str:
    C, empty = problem.signature.output, unwritten(output)
    if empty.all():
        return (
            f"every element of {C} is the NaN that the judge puts there before the launch: it is "
            f"never written, or it is read before it is written, as `{C} += …` does"
        )
    if empty.any():
        period = _period_of_blocks(~empty)
        if period is not None:
            size = f"{period[0]}×{period[1]}"
            return (
                f"of each {size} elements of {C} only the first 16×16 are written: a block has "
                f"16×16 threads, so it computes {size} elements only if each thread computes "
                "several"
            )
        found = f"{int(empty.sum())} of {output.size} elements of {C} were never written"
        if _is_swapped(empty):
            found += (
                ", as if rows and columns were swapped: blocks along x are columns, "
                "and blocks along y are rows"
            )
        return found
    finite = np.isfinite(output)
    are_special = not all(np.isfinite(matrix).all() for matrix in inputs)
    is_large = output.size > 1 << 20
    R = None if is_large and not are_special else problem.reference(inputs)
    magnitudes, largest = np.abs(0.0 if R is None else R), float(np.finfo(np.float32).max)
    must_be_finite = magnitudes <= largest / 4  # as `Expected` in problem/reference.py says
    if are_special:
        if (must_be_finite & ~finite).any():
            return (
                f"NaN or infinity reaches elements of {C} that it must not: perhaps a value that "
                "should be left out is multiplied by zero"
            )
        if (finite & ~np.isfinite(magnitudes)).any():
            return (
                f"NaN or infinity in the inputs does not reach all elements of {C} that it must: "
                "0 · NaN and 0 · ∞ are NaN, too"
            )
    elif (must_be_finite & ~finite).any():
        return (
            f"{C} is not finite somewhere: perhaps {_overflow(inputs)}by a division by zero, by an "
            "accumulator that was not set to zero, or by a read outside "
            f"{' or '.join(problem.signature.inputs)}, after whose ends the judge puts NaN"
        )
    if (finite & (magnitudes > 2 * largest)).any():
        return (
            f"elements of {C} are finite although their sums are too large for a float: they must "
            "be infinite or NaN"
        )
    if not output.any():
        return f"every element of {C} is zero{_smallest(inputs)}"
    if is_large or R is None:
        return _magnitude(comparison, output.size) + _smallest(inputs)
    if close(output.reshape(R.shape[::-1]).T, R) and not close(output, R):
        return f"{C} is transposed: it was written column by column"
    if typical := problem.hint(inputs, output):
        return typical
    scale = float((output * R).sum() / ((R * R).sum() or 1.0))
    if output.size > 1 and abs(scale - 1) > 1e-3 and abs(scale) > 1e-3 and close(output, scale * R):
        return f"every element is {scale:.4g} times what it should be"
    if (
        comparison.worst < 1e-2
        and _has_few_bits(output)
        and not _has_few_bits(R.astype(np.float32))
    ):
        return (
            f"every element of {C} has at most 11 significant bits, as FP16 and BF16 have: keep "
            "sums in float"
        )
    return _magnitude(comparison, output.size) + _smallest(inputs)


def _has_few_bits(output: Matrix) -> bool:
    """Return whether each float is also a number of FP16's or BF16's precision."""
    return not (np.ascontiguousarray(output).view(np.uint32) & 0x1FFF).any()


def _is_swapped(empty: Blocks) -> bool:
    """Return whether as many rows are written as there are columns, and the other way round."""
    for step in (1, BLOCK_SIZE):  # the kernel checks its bounds, or whole blocks are written
        rows, columns = (-(-size // step) * step for size in reversed(empty.shape))
        outside = np.ones_like(empty)
        outside[:rows, :columns] = False
        if outside.any() and (empty == outside).all():
            return True
    return False


def _period_of_blocks(written: Blocks) -> tuple[int, int] | None:
    """Return the height and width of the tiles of which only the first block is written."""
    rows: Blocks = np.any(written, axis=1)
    columns: Blocks = np.any(written, axis=0)
    if not (written == np.outer(rows, columns)).all():
        return None
    found = [_period(rows), _period(columns)]
    if found[0] is None or found[1] is None or found == [BLOCK_SIZE, BLOCK_SIZE]:
        return None
    return found[0], found[1]


def _period(written: Blocks) -> int | None:
    for period in (BLOCK_SIZE, 32, 64, 128, 256):
        if (written == (np.arange(len(written)) % period < BLOCK_SIZE)).all():
            return period
    return None


def _overflow(inputs: Inputs) -> str:
    """Name overflow as a cause if a product of two inputs may be too large for FP16."""
    largest = [float(np.abs(matrix).max()) for matrix in inputs]
    if math.prod(largest) <= float(np.finfo(np.float16).max):
        return ""
    return (
        f"by an overflow (inputs are as large as {max(largest):.2g}, and FP16 ends at 65504, "
        "float32 at 3.4e38), "
    )


def _magnitude(comparison: Comparison, elements: int) -> str:
    worst = comparison.worst
    if comparison.tolerance is Tolerance.EXACT:  # then the error is not relative
        return f"elements are off by up to {worst:.3g}, though float32 can hold every sum exactly"
    if worst < 6 * comparison.limit:
        times = f"errors up to {worst / comparison.limit:.3g} times the limit"
        return (
            f"{times} look like an accumulator of less than float32's precision: tensor cores cut "
            "off each sum, and Strassen's algorithm loses bits in sums of elements"
        )
    if worst < 1e-2:
        errors = f"errors up to {worst:.1e}"
        if elements < BLOCK_SIZE**2 or comparison.wrong.mean() < 0.5:
            return errors  # low precision would show nearly everywhere
        return f"{errors} look like inputs of low precision (TF32, FP16, BF16)"
    return "the values are far from the right ones"


def _smallest(inputs: Inputs) -> str:
    """Say so if inputs are subnormal, or their last bits are when a kernel splits them. Next to
    much larger ones they may also be lost in a sum of elements."""
    sizes = [np.abs(matrix[np.isfinite(matrix) & (matrix != 0)]) for matrix in inputs]
    ranges = [(float(size.min()), float(size.max())) for size in sizes if size.size]
    smallest, largest = min(ranges, default=(1.0, 1.0))
    if smallest >= 2.0**-103:
        return ""
    low, high = (math.floor(math.log2(size)) for size in (smallest, largest))
    found = (
        f"inputs are as small as 2^{low}: these numbers, or the parts into which a kernel splits "
        "them, are subnormal and must not become zero"
    )
    if high - low > np.finfo(np.float32).nmant:
        found += (
            f", or they are lost in sums with inputs as large as 2^{high}, such as those of "
            "Strassen's algorithm"
        )
    return f" ({found})"


def _places(wrong: Blocks, shape: tuple[int, ...], output: str) -> str:
    rows: Blocks = np.any(wrong, axis=1)
    columns: Blocks = np.any(wrong, axis=0)
    if wrong.all():
        return "every block is wrong" if wrong.size > 1 else f"{output} is a single block"
    if wrong.sum() == 1:
        return "a single block is wrong"
    last_row, last_column = np.zeros_like(wrong), np.zeros_like(wrong)
    last_row[-1] = last_column[:, -1] = True
    for name, line, size in (("row", last_row, shape[0]), ("column", last_column, shape[1])):
        if (wrong == line).all():
            found, left = f"only the last {name} of blocks is wrong", size % BLOCK_SIZE
            partial = f", which has only {left} {name}{'s' * (left > 1)}: check the bounds"
            return found + partial if left else found
    if (wrong == last_row | last_column).all():
        return "exactly the blocks at the lower and right edge are wrong: check the bounds"
    if rows.all() and not columns.all() and (wrong == columns[None, :]).all():
        return _from("column", columns)
    if columns.all() and not rows.all() and (wrong == rows[:, None]).all():
        return _from("row", rows)
    if wrong.shape[0] == wrong.shape[1] and not wrong.diagonal().any():
        return "only the blocks on the diagonal are right: rows and columns are swapped"
    share = 100 * float(wrong.mean())
    return f"{share:.3g} % of the blocks are wrong, in several places"


def _from(name: str, wrong: Blocks) -> str:
    first = int(np.argmax(wrong))
    if wrong[first:].all():
        return f"every block from {name} {first * BLOCK_SIZE} on is wrong"
    if not wrong[int(wrong.sum()) :].any():
        return f"every block before {name} {int(wrong.sum()) * BLOCK_SIZE} is wrong"
    return f"whole {name}s of blocks are wrong, others right"
