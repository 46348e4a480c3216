"""One process that grades, for all tests of a file."""

import pytest

from glassformer.school.practice.grading import Grader


@pytest.fixture(scope="module")
def grader():
    with Grader() as grader:
        yield grader
