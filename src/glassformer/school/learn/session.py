"""A round of questions: those due, then new ones; wrong answers are asked once more."""

from collections import deque
from collections.abc import Iterable, Mapping
from datetime import date

from glassformer.school.learn.questions import Question
from glassformer.school.spaced_repetition import Card, Rating, review


class QuizSession:
    """Hands out questions one by one and turns answers into cards, without any input or output."""

    def __init__(
        self,
        asked: Iterable[Question],
        cards: Mapping[str, Card],
        *,
        today: date,
        most: int | None = None,
    ) -> None:
        self.today = today
        self.cards = dict(cards)
        all_ = list(asked)
        due = [q for q in all_ if q.name in cards and cards[q.name].is_due(today)]
        due.sort(key=lambda q: cards[q.name].due)
        new = [q for q in all_ if q.name not in cards]
        self.n_due, self.n_new = len(due), len(new)
        self.waiting = deque((due + new)[:most])
        self.again: deque[Question] = deque()
        self.total = len(self.waiting)
        self.done: dict[str, Rating] = {}  # the first rating of each question of this round

    def next(self) -> Question | None:
        """The question to ask now; the same until it is graded."""
        if not self.waiting and self.again:
            self.waiting, self.again = self.again, deque()
        return self.waiting[0] if self.waiting else None

    def grade(self, rating: Rating) -> Card:
        """Grade the question that was asked and move on to the next."""
        question = self.waiting.popleft()
        if question.name not in self.done:
            self.done[question.name] = rating
            self.cards[question.name] = review(self.cards.get(question.name), rating, self.today)
        if rating == Rating.Again:  # until it is known, whatever the date of the next round
            self.again.append(question)
        return self.cards[question.name]
