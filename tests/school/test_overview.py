"""What is next: due questions, then chapter by chapter."""

from datetime import date, timedelta
from pathlib import Path

from glassformer.languages import Language
from glassformer.school.learn import chapter_names, read_questions
from glassformer.school.overview import CourseState, Step, survey_course
from glassformer.school.practice import all_exercises
from glassformer.school.progress import ProgressStore
from glassformer.school.spaced_repetition import Rating, review

TODAY = date(2026, 5, 1)


def survey(learning: ProgressStore, practice: ProgressStore, today: date = TODAY) -> CourseState:
    return survey_course(learning, practice, Language("en"), today)


def test_a_course_is_walked_from_the_first_chapter_to_the_end():
    learning, practice = ProgressStore(Path("a")), ProgressStore(Path("b"))
    assert survey(learning, practice).next == Step("chapter", "why")
    learning.mark_read("why", TODAY)
    assert survey(learning, practice).next == Step("questions", "why")
    for question in read_questions():
        if question.topic == "why":
            learning.cards[question.name] = review(None, Rating.Good, TODAY)
    found = survey(learning, practice)
    assert (found.chapters[0].state, found.chapters[1].state) == ("done", "open")
    assert found.next == Step("chapter", "weights")
    learning.mark_read("weights", TODAY)
    assert survey(learning, practice).next == Step("exercise", "dot_product_scores")


def test_questions_that_are_due_are_first():
    learning, practice = ProgressStore(Path("a")), ProgressStore(Path("b"))
    learning.cards["scale-why"] = review(None, Rating.Again, TODAY)
    assert survey(learning, practice).next == Step("chapter", "why")
    found = survey(learning, practice, TODAY + timedelta(days=30))
    assert found.next == Step("questions", None)
    assert {each.listed.name: each.due for each in found.chapters if each.due} == {"scale": 1}


def test_nothing_is_next_when_all_is_done():
    learning, practice = ProgressStore(Path("a")), ProgressStore(Path("b"))
    for name in chapter_names():
        learning.mark_read(name, TODAY)
    learning.cards = {each.name: review(None, Rating.Easy, TODAY) for each in read_questions()}
    practice.passed = {each.name for each in all_exercises()}
    found = survey(learning, practice)
    assert found.next is None and {each.state for each in found.chapters} == {"done"}
