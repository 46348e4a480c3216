"""When a question comes back: the algorithm SM-2, as published.

P. A. Woźniak, "Optimization of learning", master's thesis, Poznań University of Technology, 1990.
An answer gets a quality q of 0 … 5. The ease of a question moves with it, and is never below 1.3:

    ease ← ease + 0.1 − (5 − q) · (0.08 + (5 − q) · 0.02)

After the first right answer in a row it comes back in 1 day, after the second in 6, then each time
after the last interval times the ease. Below q = 3 it starts again, with its ease unchanged.
"""

import math
from dataclasses import asdict, dataclass
from datetime import date, timedelta
from typing import Any

FIRST_EASE, LEAST_EASE = 2.5, 1.3
QUALITIES = {"again": 1, "hard": 3, "good": 4, "easy": 5}
_FURTHEST = 36_500  # days


@dataclass(frozen=True, slots=True)
class Card:
    """What is known about one question and one learner."""

    due: str  # a date, 2026-05-01
    in_a_row: int = 0  # right answers since the last wrong one
    interval: int = 0  # days
    ease: float = FIRST_EASE
    answered: int = 0

    def is_due(self, today: date) -> bool:
        return date.fromisoformat(self.due) <= today

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> "Card":
        """What `as_dict` wrote; ValueError or TypeError where it cannot have been that."""
        card = cls(**plain)
        date.fromisoformat(card.due)
        whole = (card.in_a_row, card.interval, card.answered)
        if any(not isinstance(n, int) or isinstance(n, bool) or n < 0 for n in whole):
            raise ValueError(whole)
        if not (isinstance(card.ease, int | float) and LEAST_EASE <= card.ease < math.inf):
            raise ValueError(card.ease)
        return card


def answered(card: Card | None, quality: int, today: date) -> Card:
    """The card after one more answer.

    >>> first = answered(None, QUALITIES["good"], date(2026, 5, 1))
    >>> second = answered(first, QUALITIES["good"], date(2026, 5, 2))
    >>> first.due, second.due, second.ease
    ('2026-05-02', '2026-05-08', 2.5)
    """
    card = Card(due=today.isoformat()) if card is None else card
    if quality < 3:
        in_a_row, interval, ease = 0, 1, card.ease
    else:
        missing = 5 - quality
        ease = max(LEAST_EASE, card.ease + 0.1 - missing * (0.08 + missing * 0.02))
        in_a_row = card.in_a_row + 1
        interval = {1: 1, 2: 6}.get(in_a_row) or math.ceil(card.interval * ease)
    interval = min(interval, _FURTHEST)
    due = today + timedelta(days=interval)
    return Card(due.isoformat(), in_a_row, interval, round(ease, 4), card.answered + 1)
