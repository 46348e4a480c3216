"""Questions: a round of those that are due, the answer to one, and when it is due again."""

from datetime import date
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import Language
from glassformer.school.learn import Question, read_questions, topics
from glassformer.school.learn.blocks import read_line
from glassformer.school.learn.plain_blocks import plain_code, plain_line
from glassformer.school.learn.session import QuizSession
from glassformer.school.spaced_repetition import GRADES, review
from glassformer.workbench.jobs import Progress
from glassformer.workbench.memory import Memory
from glassformer.workbench.rooms.learn.records import open_learning, save_progress
from glassformer.workbench.wire.learn import (
    QuestionAnswerRequest,
    QuestionGradeRequest,
    QuestionsRequest,
)


def list_round(asked: QuestionsRequest, _memory: Memory, _progress: Progress) -> dict[str, Any]:
    """Questions that are due, then new ones, in the order of the terminal's round."""
    language = Language(asked.lang)
    if asked.topic is not None and asked.topic not in topics():
        values = {"topics": ", ".join(topics()), "got": repr(asked.topic)}
        raise ConfigError(language.say("quiz.error.topic", **values))
    cards = open_learning(language).cards
    chosen = [each for each in read_questions() if asked.topic in (None, each.topic)]
    session = QuizSession(chosen, cards, today=date.today(), most=asked.most)
    days = [cards[each.name].due for each in chosen if each.name in cards]
    return {
        "questions": [
            _describe_question(each, each.name not in cards, language) for each in session.waiting
        ],
        "due": session.n_due,
        "new": session.n_new,
        "next_day": min(days, default=None),
    }


def tell_answer(
    asked: QuestionAnswerRequest, _memory: Memory, _progress: Progress
) -> dict[str, Any]:
    """The explanation, and whether what was typed is right."""
    language = Language(asked.lang)
    question, code = _find(asked.name), asked.lang
    typed = (asked.typed or "").strip()
    right = None
    if question.answer is not None:
        # Nothing typed asks for the answer, as in the terminal: it was not known.
        right = question.answer.accepts(typed) if typed else False
        if right is None:
            return {
                "is_right": None,
                "is_read": False,
                "short": [],
                "full": [],
                "code": [],
                "proofs": [],
            }
    return {
        "is_right": right,
        "is_read": True,
        "short": plain_line(read_line(question.short[code])),
        "full": plain_line(read_line(question.full[language.code])),
        "code": plain_code(question.code.strip()) if question.code else [],
        "proofs": [{"kind": kind, "name": name} for kind, name in question.proofs],
    }


def grade_question(
    asked: QuestionGradeRequest, _memory: Memory, _progress: Progress
) -> dict[str, Any]:
    """Schedule a question; of the answers given on a day that it is due, the first counts."""
    language, today = Language("en"), date.today()
    question, learning = _find(asked.name), open_learning(Language("en"))
    card = learning.cards.get(question.name)
    counts = card is None or card.is_due(today)
    if counts:
        card = review(card, GRADES[asked.grade], today)
        learning.cards[question.name] = card
        save_progress(learning, language)
    assert card is not None
    return {"due": card.due, "counts": counts}


def _describe_question(question: Question, is_new: bool, language: Language) -> dict[str, Any]:
    kind = None
    if question.answer is not None:
        kind = "shape" if question.answer.is_shape else "number"
    return {
        "name": question.name,
        "topic": question.topic,
        "ask": plain_line(read_line(question.ask[language.code])),
        "typed": kind,
        "is_new": is_new,
    }


def _find(name: str) -> Question:
    for question in read_questions():
        if question.name == name:
            return question
    raise ConfigError(f"There is no question {name!r}.")
