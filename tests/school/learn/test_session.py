"""A round of questions."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from glassformer.school.learn import read_questions
from glassformer.school.learn.session import QuizSession
from glassformer.school.learn.spaced_repetition import Card

TODAY = date(2026, 5, 1)
ASKED = read_questions()[:5]


def names(session, quality=4):
    found = []
    while (question := session.next()) is not None and len(found) < 50:
        found.append(question.name)
        session.grade(quality)
    return found


def test_what_is_due_comes_first_and_the_oldest_of_it():
    a, b, c, d, e = (question.name for question in ASKED)
    cards = {
        b: Card(due="2026-04-30"),
        c: Card(due="2026-04-01"),
        d: Card(due="2026-05-02"),
    }
    session = QuizSession(ASKED, cards, today=TODAY)
    assert (session.n_due, session.n_new, session.total) == (2, 2, 4)
    assert names(session) == [c, b, a, e]


def test_at_most_so_many():
    assert len(names(QuizSession(ASKED, {}, today=TODAY, most=2))) == 2


def test_a_wrong_answer_is_asked_again_at_the_end_but_counts_once():
    session = QuizSession(ASKED[:2], {}, today=TODAY)
    first, second = (question.name for question in ASKED[:2])
    session.grade(1)
    session.grade(4)
    assert session.next().name == first
    session.grade(1)
    assert session.next().name == first
    session.grade(5)
    assert session.next() is None
    assert session.done == {first: 1, second: 4}
    assert (session.cards[first].answered, session.cards[first].interval) == (1, 1)


def test_the_same_question_until_it_is_graded():
    session = QuizSession(ASKED, {}, today=TODAY)
    assert session.next() is session.next()


@given(st.lists(st.sampled_from([1, 3, 4, 5]), min_size=5, max_size=60))
def test_a_round_ends_when_everything_was_right_once(qualities):
    session, left = QuizSession(ASKED, {}, today=TODAY), iter(qualities)
    right = set()
    while (question := session.next()) is not None:
        quality = next(left, 4)
        if quality >= 3:
            right.add(question.name)
        session.grade(quality)
    assert right == {question.name for question in ASKED}
    assert set(session.done) == right == set(session.cards)
