"""Cases as they are launched: inputs, and the output that is expected."""

from dataclasses import dataclass

from harness.judge.grading import Grading
from harness.judge.steps import Executor, Step
from problem.cases import Case
from problem.problem import Comparable, Inputs, Problem


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case as it is launched. expected: None if only parts of the output will be compared."""

    case: Case
    inputs: Inputs
    expected: Comparable | None


def preparing(problem: Problem, case: Case, seed: int, *, whole: bool = True) -> Step[Prepared]:
    return Step(Executor.JUDGE, case, lambda _: prepare(problem, case, seed, whole=whole))


def prepare(problem: Problem, case: Case, seed: int, *, whole: bool = True) -> Prepared:
    """Draw the inputs of a case, and compute the expected output if all of it will be compared."""
    inputs = problem.draw(case, seed)
    return Prepared(case, inputs, problem.expected(case, inputs) if whole else None)


def sampled_case(grading: Grading) -> Case | None:
    """Return the case of the ranked size that is verified in some blocks, if there is one. Its
    inputs are kept for the sanitizer, which samples it, too."""
    if grading.scores or grading.quick or runs_smaller(grading):
        return None
    return grading.problem.ranked_case(grading.seed)


def runs_smaller(grading: Grading) -> bool:
    """Return whether a smaller size replaces the ranked one."""
    assert grading.ready is not None
    depend = grading.ready.blocks_depend
    return depend and not grading.scores and not grading.quick
