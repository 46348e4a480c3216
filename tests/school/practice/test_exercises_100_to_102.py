"""Its stub fails, its solution passes, its faults are named: a share of the exercises."""

import pytest

from school.practice.every_exercise import numbered, problems


@pytest.mark.parametrize("exercise", numbered(__file__), ids=lambda exercise: exercise.name)
def test_exercise_works(exercise, grader):
    assert problems(exercise, grader) == []
