"""Parts that are not written yet, lent by the library: the solutions of their exercises.

A lent part runs where the learner's code runs, because the two call each other. So a program
written to look for it can read a solution that was not earned; grading an exercise never puts its
own solution there.
"""

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from glassformer.school.practice.exercise import Exercise, find_exercise
from glassformer.school.practice.module_source import load_source


def lend(*names: str) -> SimpleNamespace:
    """What these exercises ask for, from their solutions.

    >>> sorted(vars(lend("split_heads", "merge_heads")))
    ['merge_heads', 'split_heads']
    """
    exercises = [find_exercise(name) for name in names]
    modules = [load_source(each.solution, "lent.py", "lent") for each in exercises]
    return gather(zip(exercises, modules, strict=True))


def gather(loaded: Iterable[tuple[Exercise, Any]]) -> SimpleNamespace:
    """The names that exercises ask for, each from the module in which it is defined."""
    return SimpleNamespace(
        **{name: getattr(module, name) for exercise, module in loaded for name in exercise.entry}
    )
