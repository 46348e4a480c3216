"""Answers that are typed: numbers and shapes, read generously and compared exactly."""

import math
import re
import unicodedata
from dataclasses import dataclass
from fractions import Fraction

_SEPARATORS = re.compile(r"[\s,×x*;]+")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is right: one number, or the numbers of a shape."""

    numbers: tuple[float, ...]
    is_shape: bool
    tolerance: float = 0.0  # that rounding may take, for a number that is not whole

    def accepts(self, typed: str) -> bool | None:
        """Whether what was typed is right; None where it cannot be read.

        >>> shape = read_answer([2, 8, 10, 96])
        >>> shape.accepts("(2, 8, 10, 96)"), shape.accepts("2x8x10x768"), shape.accepts("?")
        (True, False, None)
        >>> read_answer(0.63).accepts("0.628"), read_answer(8).accepts("√64")
        (True, None)
        """
        found = _parse_shape(typed) if self.is_shape else _parse_number(typed)
        if found is None:
            return None
        if len(found) != len(self.numbers):
            return False
        return all(
            abs(ours - theirs) <= self.tolerance + 1e-9 * abs(ours)
            for ours, theirs in zip(self.numbers, found, strict=True)
        )

    def __str__(self) -> str:
        shown = [f"{n:,.0f}" if n == int(n) else f"{n:g}" for n in self.numbers]
        if not self.is_shape:
            return shown[0]
        return f"({', '.join(f'{n:.0f}' for n in self.numbers)})"


def read_answer(plain: int | float | list[int]) -> Answer:
    """The answer as a file of questions has it: a number, or a list for a shape.

    A number with decimals may be off by six tenths of its last one.
    """
    if isinstance(plain, list):
        return Answer(tuple(map(float, plain)), is_shape=True)
    decimals = len(str(plain).partition(".")[2]) if isinstance(plain, float) else 0
    tolerance = 0.6 * 10**-decimals if decimals else 0.0
    return Answer((float(plain),), is_shape=False, tolerance=tolerance)


def _parse_shape(typed: str) -> tuple[float, ...] | None:
    inner = unicodedata.normalize("NFKC", typed).strip().strip("()[]{}").strip()
    parts = [part for part in _SEPARATORS.split(inner.lower()) if part]
    if not parts or not all(part.isdecimal() for part in parts):
        return None
    return tuple(float(part) for part in parts)


def _parse_number(typed: str) -> tuple[float] | None:
    text = unicodedata.normalize("NFKC", typed).strip().replace("−", "-")
    text = re.sub(r"(?<=\d)[,_ ](?=\d{3}\b)", "", text)
    percent = text.endswith("%")
    try:
        number = float(Fraction(text.removesuffix("%").strip()))
    except (ValueError, ZeroDivisionError):
        return None
    if not math.isfinite(number):
        return None
    return (number / 100 if percent else number,)
