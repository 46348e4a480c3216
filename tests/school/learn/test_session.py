"""A round of questions."""

from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from glassformer.school.learn import read_questions
from glassformer.school.learn.session import QuizSession
from glassformer.school.spaced_repetition import Card, Rating

TODAY = date(2026, 5, 1)
ASKED = read_questions()[:5]


def names(session, rating=Rating.Good):
    found = []
    while (question := session.next()) is not None and len(found) < 50:
        found.append(question.name)
        session.grade(rating)
    return found


def test_what_is_due_comes_first_and_the_oldest_of_it():
    a, b, c, d, e = (question.name for question in ASKED)
    cards = {
        b: Card("2026-04-30", "2026-03-01", 20.0, 5.0),
        c: Card("2026-04-01", "2026-03-01", 20.0, 5.0),
        d: Card("2026-05-02", "2026-03-01", 20.0, 5.0),
    }
    session = QuizSession(ASKED, cards, today=TODAY)
    assert (session.n_due, session.n_new, session.total) == (2, 2, 4)
    assert names(session) == [c, b, a, e]


def test_at_most_so_many():
    assert len(names(QuizSession(ASKED, {}, today=TODAY, most=2))) == 2


def test_a_wrong_answer_is_asked_again_at_the_end_but_counts_once():
    session = QuizSession(ASKED[:2], {}, today=TODAY)
    first, second = (question.name for question in ASKED[:2])
    session.grade(Rating.Again)
    session.grade(Rating.Good)
    assert session.next().name == first
    session.grade(Rating.Again)
    assert session.next().name == first
    session.grade(Rating.Easy)
    assert session.next() is None
    assert session.done == {first: Rating.Again, second: Rating.Good}
    assert (session.cards[first].answered, session.cards[first].due) == (1, "2026-05-02")


def test_the_same_question_until_it_is_graded():
    session = QuizSession(ASKED, {}, today=TODAY)
    assert session.next() is session.next()


@given(st.lists(st.sampled_from(Rating), min_size=5, max_size=60))
def test_a_round_ends_when_everything_was_right_once(ratings):
    session, left = QuizSession(ASKED, {}, today=TODAY), iter(ratings)
    right = set()
    while (question := session.next()) is not None:
        rating = next(left, Rating.Good)
        if rating != Rating.Again:
            right.add(question.name)
        session.grade(rating)
    assert right == {question.name for question in ASKED}
    assert set(session.done) == right == set(session.cards)
