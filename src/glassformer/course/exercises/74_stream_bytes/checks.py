"""Texts of characters of one to four bytes, cut anywhere."""

from collections.abc import Iterator
from typing import Any

from glassformer.school.practice.cases import Case, Draw

_CHARACTERS = ("a", "z", " ", "é", "ß", "猫", "水", "，", "🙂", "𝄞")


def call(m: Any, pieces: list[bytes]) -> list[str]:
    return m.stream(pieces)


def cut(draw: Draw, text: str, longest: int) -> list[bytes]:
    data, pieces = text.encode(), []
    while data:
        n = draw.size(1, longest)
        pieces.append(data[:n])
        data = data[n:]
    return pieces


def cases(draw: Draw) -> Iterator[Case]:
    yield Case("ascii", call, {"pieces": cut(draw, "the cat sat on the mat", 4)}, ("shown",))
    yield Case("bytes", call, {"pieces": cut(draw, "né猫🙂b", 1)}, ("shown",))
    for longest in (3, 5, 7):
        text = "".join(draw.choice(_CHARACTERS) for _ in range(24))
        yield Case("pieces", call, {"pieces": cut(draw, text, longest)}, ("shown",))
