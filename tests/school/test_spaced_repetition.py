"""FSRS in whole days: laws that hold for any history of answers, and cards of the older SM-2."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.school.spaced_repetition import (
    EASIEST,
    GRADES,
    HARDEST,
    Card,
    Rating,
    card_from_sm2,
    review,
)

TODAY = date(2026, 5, 1)
RATING = st.sampled_from(Rating)
RIGHT = st.sampled_from([Rating.Hard, Rating.Good, Rating.Easy])


def after(ratings, today=TODAY):
    """The card after answers that are each given on the day they are due."""
    card = None
    for rating in ratings:
        card = review(card, rating, today)
        today = date.fromisoformat(card.due)
    return card


def days(card):
    return (date.fromisoformat(card.due) - date.fromisoformat(card.reviewed)).days


def test_good_answers_come_back_later_and_later():
    assert [days(after([Rating.Good] * n)) for n in (1, 2, 3, 4)] == [2, 11, 46, 163]


def test_the_first_answer_sets_the_start():
    first = [review(None, rating, TODAY) for rating in GRADES.values()]
    assert [days(card) for card in first] == [1, 1, 2, 8]
    difficulties = [card.difficulty for card in first]
    assert difficulties == sorted(difficulties, reverse=True)


def test_a_wrong_answer_brings_a_question_back_soon_and_makes_it_harder():
    card = after([Rating.Good] * 4)
    again = review(card, Rating.Again, date.fromisoformat(card.due))
    assert days(again) < days(card) / 10
    assert again.difficulty > card.difficulty and again.answered == 5


@given(st.lists(RATING, min_size=1, max_size=12))
def test_cards_stay_within_their_bounds(ratings):
    card = after(ratings)
    assert EASIEST <= card.difficulty <= HARDEST and card.stability > 0
    assert 1 <= days(card) <= 36_500
    assert card.answered == len(ratings)
    assert Card.from_dict(card.as_dict()) == card


@given(st.lists(RATING, max_size=8), RIGHT, RIGHT)
def test_a_better_answer_never_comes_back_sooner(history, worse, better):
    worse, better = sorted((worse, better))
    card = after(history)
    today = TODAY if card is None else date.fromisoformat(card.due)
    assert review(card, worse, today).due <= review(card, better, today).due


@given(st.lists(RIGHT, min_size=1, max_size=8), RIGHT)
def test_right_answers_push_a_question_further_away(history, rating):
    card = after(history)
    assert days(review(card, rating, date.fromisoformat(card.due))) >= days(card)


@given(st.lists(RATING, min_size=1, max_size=5), RATING, st.integers(-400, 400))
def test_any_day_will_do_even_one_before_the_last(history, rating, shift):
    card = after(history)
    today = date.fromisoformat(card.reviewed) + timedelta(days=shift)
    assert review(card, rating, today).due > today.isoformat()


def test_due_is_a_matter_of_days():
    card = review(None, Rating.Good, TODAY)
    assert not card.is_due(TODAY + timedelta(days=1))
    assert card.is_due(TODAY + timedelta(days=2))
    assert card.is_due(TODAY + timedelta(days=400))


@pytest.mark.parametrize(("ease", "difficulty"), [(2.5, 2.1181), (1.3, 10.0), (2.9, 1.0)])
def test_a_card_of_sm2_keeps_its_date_and_goes_on_from_its_interval(ease, difficulty):
    old = {"due": "2026-05-07", "in_a_row": 2, "interval": 6, "ease": ease, "answered": 4}
    card = card_from_sm2(old)
    assert card == Card("2026-05-07", "2026-05-01", 6.0, difficulty, 4)
    assert days(review(card, Rating.Good, date(2026, 5, 7))) > 6
    assert days(review(card, Rating.Again, date(2026, 5, 7))) < 6


@pytest.mark.plain
@pytest.mark.parametrize(
    "change",
    [
        {"due": "soon"},
        {"due": 5},
        {"interval": -1},
        {"interval": True},
        {"in_a_row": 1.5},
        {"answered": "3"},
        {"ease": "2"},
        {"ease": float("nan")},
    ],
)
def test_a_damaged_card_of_sm2(change):
    old = {"due": "2026-05-07", "in_a_row": 2, "interval": 6, "ease": 2.5, "answered": 4}
    with pytest.raises((ValueError, TypeError)):
        card_from_sm2(old | change)
    with pytest.raises(KeyError):
        card_from_sm2({"due": "2026-05-07"})


@pytest.mark.plain
@pytest.mark.parametrize(
    "change",
    [
        {"due": "soon"},
        {"due": 5},
        {"reviewed": "yesterday"},
        {"stability": 0},
        {"stability": float("inf")},
        {"stability": "2"},
        {"stability": True},
        {"difficulty": 0.9},
        {"difficulty": 10.1},
        {"difficulty": float("nan")},
        {"answered": -1},
        {"answered": 1.0},
        {"colour": "red"},
    ],
)
def test_a_card_that_cannot_be_one(change):
    right = {"due": "2026-05-03", "reviewed": "2026-05-01", "stability": 2.3, "difficulty": 5.0}
    assert Card.from_dict(right).answered == 1
    with pytest.raises((ValueError, TypeError)):
        Card.from_dict(right | change)
    with pytest.raises(TypeError):
        Card.from_dict({})
