"""A small class with an exercise of its own, and a grader that starts no process."""

from datetime import date

import pytest

from glassformer.languages import Language
from glassformer.school.classroom.class_folder import FILE, create_class, read_class
from glassformer.school.classroom.new_exercise import create_exercise
from glassformer.school.practice.grading import Grader
from glassformer.school.practice.report import Finding, GradingReport

CLASS = """format = "glassformer class"
version = 1
title = "Autumn"

[[part]]
title = "First"
opens = 2026-05-01
exercises = ["centred", "attention"]

[[part]]
title = "Second"
opens = 2026-05-08
exercises = ["causal_mask"]
"""


@pytest.fixture
def classroom(tmp_path):
    folder = tmp_path / "autumn"
    options = {"title": "Autumn", "plan": "weekend", "language": Language("en")}
    created = create_class(folder, start=date(2026, 5, 1), **options)
    create_exercise(created, "centred")
    (folder / FILE).write_text(CLASS, "utf-8")
    return read_class(folder)


class Words(Grader):
    """Passes a source that says so, and names the fault that one names."""

    def __init__(self):
        self.sources = []

    def grade_source(self, exercise, source, path=None, *, seed=None):
        self.sources.append(source)
        if "right" in source:
            return GradingReport(exercise=exercise.name, passed=True)
        faults = tuple(fault.name for fault in exercise.faults() if fault.name in source)
        finding = Finding("practice.found.large")
        return GradingReport(
            exercise=exercise.name, passed=False, kind="fault", faults=faults, finding=finding
        )


@pytest.fixture
def words():
    return Words()
