"""Exercises, and a grader that names the mistake.

An exercise is a folder in exercises/. Reading order: exercise, draw, cases, dropout, parts (what
authors write with); values, compare, outcome, naming (how results are compared); forbidden,
limits, landlock, seccomp, isolation, originals (what learner's code may do); messages, trail,
runner, report, findings, judge, trial (one grading, in several processes); bootstrap, server,
grading (the door to it); telling, drawing (what is said and shown); workspace, progress, session
(a learner's folder, and a sitting as a state machine), watching (a sitting in a terminal); verify
(proof for authors). Imports render, languages and errors.
"""

from glassformer.school.practice.exercise import Exercise, all_exercises, find_exercise
from glassformer.school.practice.report import GradingReport

__all__ = ["Exercise", "GradingReport", "all_exercises", "find_exercise"]
