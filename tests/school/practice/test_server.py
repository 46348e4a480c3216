"""The first grading does without torch's compiler, unless the file needs what imports it."""

from glassformer.school.practice import find_exercise
from glassformer.school.practice.grading import Grader


def test_an_optimizer_works_in_the_very_first_grading():
    exercise = find_exercise("translate_letters")
    with Grader() as grader:
        assert grader.grade_source(exercise, exercise.solution).passed
