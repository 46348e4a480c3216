"""SM-2: its published numbers, and laws that hold for any history of answers."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glassformer.school.learn.spaced_repetition import (
    FIRST_EASE,
    LEAST_EASE,
    QUALITIES,
    Card,
    answered,
)

TODAY = date(2026, 5, 1)
QUALITY = st.integers(0, 5)


def after(qualities, today=TODAY):
    card = None
    for quality in qualities:
        card = answered(card, quality, today)
        today = date.fromisoformat(card.due)
    return card


def test_the_first_intervals_are_one_and_six_days():
    assert [after([4] * n).interval for n in (1, 2, 3, 4)] == [1, 6, 15, 38]


@pytest.mark.parametrize(("quality", "change"), [(5, 0.1), (4, 0.0), (3, -0.14)])
def test_the_ease_moves_as_published(quality, change):
    assert answered(None, quality, TODAY).ease == pytest.approx(FIRST_EASE + change)


@pytest.mark.parametrize("quality", [0, 1, 2])
def test_a_wrong_answer_starts_again_and_keeps_the_ease(quality):
    card = after([5, 5, 5])
    again = answered(card, quality, TODAY)
    assert (again.in_a_row, again.interval, again.ease) == (0, 1, card.ease)
    assert again.due == "2026-05-02"


@given(st.lists(QUALITY, min_size=1, max_size=30))
def test_ease_has_a_floor_and_intervals_are_days(qualities):
    card = after(qualities[:12])
    assert card.ease >= LEAST_EASE
    assert card.interval >= 1
    assert card.answered == len(qualities[:12])
    assert Card.from_dict(card.as_dict()) == card


@given(st.lists(QUALITY, max_size=8), st.integers(3, 5), st.integers(3, 5))
def test_a_better_answer_never_comes_back_sooner(history, worse, better):
    worse, better = sorted((worse, better))
    card = after(history)
    assert answered(card, worse, TODAY).due <= answered(card, better, TODAY).due


@given(st.lists(st.integers(3, 5), min_size=1, max_size=8), st.integers(3, 5))
def test_right_answers_push_a_question_further_away(history, quality):
    card = after(history)
    assert answered(card, quality, TODAY).interval >= card.interval


def test_due_is_a_matter_of_days():
    card = answered(None, QUALITIES["good"], TODAY)
    assert not card.is_due(TODAY)
    assert card.is_due(TODAY + timedelta(days=1))
    assert card.is_due(TODAY + timedelta(days=400))


@pytest.mark.plain
@pytest.mark.parametrize(
    "wrong",
    [
        {"due": "soon"},
        {"due": "2026-05-01", "interval": -1},
        {"due": "2026-05-01", "interval": True},
        {"due": "2026-05-01", "in_a_row": 1.5},
        {"due": "2026-05-01", "ease": 0.1},
        {"due": "2026-05-01", "ease": "2"},
        {"due": "2026-05-01", "ease": float("nan")},
        {"due": 5},
        {"due": "2026-05-01", "colour": "red"},
        {},
    ],
)
def test_a_card_that_cannot_be_one(wrong):
    with pytest.raises((ValueError, TypeError)):
        Card.from_dict(wrong)
