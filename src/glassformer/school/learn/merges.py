"""Byte-pair encoding of a short text, merge by merge: the picture of tokenization."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language
from glassformer.render.paragraph import Paragraph

_WORD = re.compile(r" ?[^ ]+| +")  # a word keeps the space before it; no merge crosses its border


@dataclass(frozen=True, slots=True)
class Merge:
    """One merge: the new piece, how often its two halves were neighbours, the tokens left."""

    piece: bytes
    count: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Merges:
    """A text, the merges learned from it, and the text in pieces after the last of them."""

    text: str
    merges: tuple[Merge, ...]
    pieces: tuple[bytes, ...]


def learn_merges(text: str, most: int) -> Merges:
    """Merge the most frequent pair of neighbours, at most so many times.

    Of equally frequent pairs the one that occurs first is merged; a pair that occurs once is not
    worth a token.

    >>> [merge.piece for merge in learn_merges("aaab aaab", 2).merges]
    [b'aa', b'aaa']
    """
    words = [[bytes([byte]) for byte in word.encode()] for word in _WORD.findall(text)]
    merges: list[Merge] = []
    while len(merges) < most:
        pairs = Counter(pair for word in words for pair in pairwise(word))
        best = max(pairs, key=pairs.__getitem__, default=None)
        if best is None or pairs[best] < 2:
            break
        words = [_join_pair(word, best) for word in words]
        merges.append(Merge(b"".join(best), pairs[best], sum(map(len, words))))
    return Merges(text, tuple(merges), tuple(piece for word in words for piece in word))


def _join_pair(word: list[bytes], pair: tuple[bytes, bytes]) -> list[bytes]:
    joined: list[bytes] = []
    i = 0
    while i < len(word):
        step = 2 if tuple(word[i : i + 2]) == pair else 1
        joined.append(b"".join(word[i : i + step]))
        i += step
    return joined


def format_piece(piece: bytes) -> str:
    """A piece as it is shown: spaces are visible, and so are bytes that are no whole character.

    >>> format_piece(b" cat"), format_piece("猫".encode()[:2])
    ('␣cat', 'E7·8C')
    """
    try:
        return piece.decode().replace(" ", "␣")
    except UnicodeDecodeError:
        return "·".join(f"{byte:02X}" for byte in piece)


def _letters(language: Language) -> Merges:  # noqa: ARG001
    return learn_merges("the cat sat on the mat and the other cat sat on that hat", 12)


MERGE_PICTURES: dict[str, Callable[[Language], Merges]] = {"merges": _letters}


def draw_merges(picture: Merges, *, language: Language) -> RenderableType:
    """The merges in the terminal, a line each, and the text in pieces below them."""
    grid = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in merge_heads(language):
        grid.add_column(name, justify="right", no_wrap=True)
    grid.add_row("0", "", "", str(len(picture.text.encode())))
    for n, merge in enumerate(picture.merges, start=1):
        shown = Text(format_piece(merge.piece), style="cyan")
        grid.add_row(str(n), shown, str(merge.count), str(merge.n_tokens))
    pieces = " ".join(format_piece(piece) for piece in picture.pieces)
    return Group(grid, "", Paragraph(pieces))


def merge_heads(language: Language) -> list[str]:
    """The heads of the columns: which merge, the new piece, its count, the tokens left."""
    say = language.say
    return [
        say("learn.picture.merge.n"),
        say("learn.picture.merge.piece"),
        say("learn.picture.merge.count"),
        say("learn.picture.merge.left"),
    ]
