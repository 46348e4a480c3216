"""Short texts of few words, so that contexts repeat; a vocabulary with words that never occur."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw

_WORDS = 4  # that occur; the vocabulary has more


def draw_text(draw: Draw, length: int) -> list[int]:
    return draw.integers(0, _WORDS, length).tolist()


def ask(m: Any, **given: Any) -> Any:
    return float(m.probability(**given))


def add_up(m: Any, text: list[int], context: list[int], vocab_size: int) -> Any:
    return sum(float(m.probability(text, context, word, vocab_size)) for word in range(vocab_size))


def measure(m: Any, **given: Any) -> Any:
    return float(m.perplexity(**given))


def cases(draw: Draw) -> Iterator[Case]:
    for length in (1, 2, 0):
        text, at = draw_text(draw, 30), draw.size(0, 20)
        given = {"text": text, "context": text[at : at + length], "vocab_size": draw.size(6, 9)}
        word = text[at + length]
        yield Case("counted", ask, {**given, "word": word}, ("probability",))
    text = draw_text(draw, 20)
    text += [5, 1, 5]  # 5 occurs twice and is followed by a word once
    given = {"text": text, "context": [5], "vocab_size": 8}
    yield Case("end", ask, {**given, "word": 1}, ("probability",))
    yield Case("sum", add_up, given, ("sum",))
    for n in (2, 1, 3):
        yield Case(
            "perplexity",
            measure,
            {
                "text": draw_text(draw, 40),
                "tokens": [*draw_text(draw, 11), 5],
                "n": n,
                "vocab_size": draw.size(6, 9),
            },
            ("perplexity",),
        )
