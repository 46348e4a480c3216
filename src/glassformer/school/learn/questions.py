"""Questions as in interviews: read from TOML, one file for each topic."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from glassformer.errors import ConfigError
from glassformer.languages import CODES
from glassformer.school.learn.answers import Answer, read_answer


@dataclass(frozen=True, slots=True)
class Question:
    """One question; texts by language. Where `answer` is given it is typed, and graded."""

    name: str
    topic: str
    ask: dict[str, str]
    short: dict[str, str]
    full: dict[str, str]
    proofs: tuple[tuple[str, str], ...]  # kind and name: ("lab", "scale")
    answer: Answer | None = None
    code: str = ""  # that computes the answer, and leaves it under this name


@cache
def read_questions() -> tuple[Question, ...]:
    """Every question, topic by topic in the order of the chapters.

    >>> read_questions()[0].topic
    'why'
    """
    from glassformer.school.learn.chapters import chapter_names

    folder = files("glassformer.course").joinpath("questions")
    found: list[Question] = []
    for topic in chapter_names():
        file = folder.joinpath(f"{topic}.toml")
        plain = tomllib.loads(file.read_text("utf-8")) if file.is_file() else {}
        found += [_read(each, topic) for each in plain.get("question", [])]
    return tuple(found)


def topics() -> list[str]:
    """The topics that have questions, in order."""
    return list(dict.fromkeys(question.topic for question in read_questions()))


def _read(plain: dict[str, Any], topic: str) -> Question:
    name = plain.get("name", "?")
    for key in ("ask", "short", "full"):
        if sorted(plain.get(key, {})) != sorted(CODES):
            raise ConfigError(
                f"A question must have {key} in {' and '.join(CODES)}; {topic}.toml has "
                f"{sorted(plain.get(key, {}))} for {name!r}."
            )
    proofs = tuple(tuple(proof.split(maxsplit=1)) for proof in plain["proofs"])
    return Question(
        name=name,
        topic=topic,
        ask=plain["ask"],
        short=plain["short"],
        full=plain["full"],
        proofs=proofs,
        answer=read_answer(plain["answer"]) if "answer" in plain else None,
        code=plain.get("code", ""),
    )
