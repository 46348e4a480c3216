"""When to repeat a question: FSRS, the Free Spaced Repetition Scheduler, by the package `fsrs`.

FSRS keeps two numbers for each question: its stability, the days until the chance of recalling the
answer falls to 90 percent, and its difficulty, from 1 to 10. Every answer updates both, and the
question is due again when its stability has run out. We count in whole days: a question answered
wrongly is repeated within the round (see `session`), not minutes later.
"""

import math
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

import fsrs
from fsrs import Rating

__all__ = ["GRADES", "Card", "Rating", "card_from_sm2", "review"]

GRADES = {
    "again": Rating.Again,
    "hard": Rating.Hard,
    "good": Rating.Good,
    "easy": Rating.Easy,
}
EASIEST, HARDEST = 1.0, 10.0
_LONGEST = 36_500  # days
# No steps of minutes, and no random fuzz: the same answers give the same dates.
_SCHEDULER = fsrs.Scheduler(
    learning_steps=(), relearning_steps=(), maximum_interval=_LONGEST, enable_fuzzing=False
)


@dataclass(frozen=True, slots=True)
class Card:
    """What is known about one question and one learner."""

    due: str  # dates as in 2026-05-01
    reviewed: str
    stability: float  # days
    difficulty: float
    answered: int = 1

    def is_due(self, today: date) -> bool:
        return date.fromisoformat(self.due) <= today

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Card":
        """The inverse of `as_dict`; ValueError or TypeError for anything else."""
        card = cls(**plain)
        for day in (card.due, card.reviewed):
            date.fromisoformat(day)
        if not (_is_number(card.stability) and 0 < card.stability < math.inf):
            raise ValueError(card.stability)
        if not (_is_number(card.difficulty) and EASIEST <= card.difficulty <= HARDEST):
            raise ValueError(card.difficulty)
        if type(card.answered) is not int or card.answered < 0:
            raise ValueError(card.answered)
        return card


def review(card: Card | None, rating: Rating, today: date) -> Card:
    """The card after one more answer; None is a question that was never asked.

    >>> first = review(None, Rating.Good, date(2026, 5, 1))
    >>> second = review(first, Rating.Good, date(2026, 5, 3))
    >>> first.due, second.due
    ('2026-05-03', '2026-05-14')
    """
    before = fsrs.Card(card_id=0, due=_noon(today))
    if card is not None:
        before = fsrs.Card(
            card_id=0,
            state=fsrs.State.Review,
            stability=card.stability,
            difficulty=card.difficulty,
            due=_noon(date.fromisoformat(card.due)),
            # A clock that was set back must not make FSRS count negative days.
            last_review=_noon(min(date.fromisoformat(card.reviewed), today)),
        )
    after, _ = _SCHEDULER.review_card(before, rating, _noon(today))
    assert after.stability is not None and after.difficulty is not None
    return Card(
        due=after.due.date().isoformat(),
        reviewed=today.isoformat(),
        stability=round(after.stability, 4),
        difficulty=round(after.difficulty, 4),
        answered=1 if card is None else card.answered + 1,
    )


def card_from_sm2(plain: dict[str, Any]) -> Card:
    """A card of the scheduler we had before, SM-2, which kept an interval and an ease.

    SM-2's interval aims at about the same recall as our stability, so it carries over as it is. Its
    ease becomes a difficulty: 2.5, where every question started, is where FSRS starts after a good
    answer; 1.3, the least possible, is the hardest.
    """
    due, interval, ease = date.fromisoformat(plain["due"]), plain["interval"], plain["ease"]
    whole = (interval, plain["in_a_row"], plain["answered"])
    if any(type(n) is not int or n < 0 for n in whole) or not _is_number(ease):
        raise ValueError(plain)
    start = review(None, Rating.Good, due).difficulty
    difficulty = start + (2.5 - ease) * (HARDEST - start) / (2.5 - 1.3)
    return Card(
        due=due.isoformat(),
        reviewed=(due - timedelta(days=interval)).isoformat(),
        stability=float(max(interval, 1)),
        difficulty=round(min(max(difficulty, EASIEST), HARDEST), 4),
        answered=plain["answered"],
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _noon(day: date) -> datetime:
    return datetime.combine(day, time(12), UTC)
