"""One process that grades, for all tests: it imports torch and its compiler but once."""

import pytest

from glassformer.school.practice.grading import Grader


@pytest.fixture(scope="session")
def grader():
    with Grader() as grader:
        yield grader
