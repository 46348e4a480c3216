"""Every exercise that ships, shared out among several test files so that each core has its part."""

import re
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.practice import all_exercises
from glassformer.school.practice.verification import verify_one

SEEDS = (1, 2, 3)  # the same in every run, so that a failure can be repeated
NAME = re.compile(r"test_exercises_(\d+)_to_(\d+)\.py")


def numbered(file):
    """The exercises that a test file is named after."""
    first, last = map(int, NAME.fullmatch(Path(file).name).groups())
    return [exercise for exercise in all_exercises() if first <= exercise.number <= last]


def problems(exercise, grader):
    """What is wrong with an exercise: its stub passes, its solution fails, a fault is misnamed …"""
    say = Language("en").say
    verdict = verify_one(exercise, grader, seeds=SEEDS)
    return [say(each.key, **each.values) for each in verdict.problems]
