"""Exercises, and a grader that names the mistake.

An exercise is a folder in course/exercises. Reading order: exercise, random_inputs, cases, dropout,
example_modules (what authors write with); plain_values, comparison, outcome, fault_naming (how
results are compared); report, solution_edits, attention_faults, value_faults, general_faults,
derived_faults, result_relations, error_causes, weights_probe, mistake_naming (how a mistake gets
its name, known or not); forbidden, limits, landlock, seccomp, isolation, originals (what learner's
code may do); messages, call_trail, runner, findings, stops, judge, trial (one grading, in several
processes), fault_trials (many, in one process); bootstrap, server, grading (how the rest of the
program reaches it); prose, report_texts, terminal (what a learner reads); workspace, session,
terminal_session (a learner's folder, and a session as a state machine); verification (proof for
authors); capstone (files joined into one model). Imports render and what lies below.
"""

from glassformer.school.practice.exercise import Exercise, all_exercises, find_exercise
from glassformer.school.practice.report import GradingReport

__all__ = ["Exercise", "GradingReport", "all_exercises", "find_exercise"]
