"""Pictures of fast attention: how fast a GPU can be, and an online softmax block by block."""

import math
from collections.abc import Callable, Sequence

import torch

from glassformer.languages import Language
from glassformer.school.learn.bars import Bars
from glassformer.school.learn.picture import Album, Matrix, Picture

# An A100: 16-bit matrix products (Dao 2023) and bytes from its memory (Dao et al. 2022, fig. 1).
PEAK, BANDWIDTH = 312e12, 1.5e12
_WIDTH, _BYTES = 64, 2
_LENGTHS = (256, 1024, 4096, 16_384)
_ROWS = (
    ((1.0, 3.0), (2.0, 5.0)),
    ((5.0, 2.0), (3.0, 1.0)),
    ((1.0, 1.0), (1.0, 1.0)),
    ((1.0, 2.0), (3.0, 4.0), (0.0, 9.0)),
)


def count_operations(L: int) -> int:
    """Multiplications and additions of both products of one head."""
    return 4 * L * L * _WIDTH


def count_bytes(L: int, rows: int | None) -> int:
    """What one head moves: written out, or with tiles of so many queries."""
    if rows is None:  # q, k, v and out once; scores and weights are written and read
        return _BYTES * (4 * L * _WIDTH + 4 * L * L)
    n_tiles = math.ceil(L / rows)
    return _BYTES * (2 * L * _WIDTH + n_tiles * 2 * L * _WIDTH)


def _roofline(language: Language) -> Picture:
    """The most that an A100 can compute, by how attention is cut into tiles."""
    say = language.say
    pages = []
    for L in _LENGTHS:
        ways = [(say("learn.picture.flash.written"), count_operations(L), count_bytes(L, None))]
        for rows in (16, 64, 256):
            name = say("learn.picture.flash.tiles", n=rows)
            ways.append((name, count_operations(L), count_bytes(L, rows)))
        step = 4 * L * _WIDTH, _BYTES * 2 * L * _WIDTH  # one query reads all keys and values
        ways.append((say("learn.picture.flash.step"), *step))
        bars = tuple((name, *_attain(operations / n_bytes)) for name, operations, n_bytes in ways)
        title = say("learn.picture.flash.peak", peak=f"{PEAK / 1e12:.0f}")
        pages.append((f"L = {L:,}", Bars(bars, title, full=PEAK / 1e12)))
    return Album(tuple(pages))


def _attain(intensity: float) -> tuple[float, str]:
    """The most operations in a second at this many operations for each byte, in 10¹²."""
    most = min(PEAK, intensity * BANDWIDTH) / 1e12
    return most, f"{most:.3g}  ({intensity:.3g} op/B)"


def _online(language: Language) -> Picture:
    """Online softmax of a row of scores; the values are 10, 20, 30 …"""
    del language
    return Album(
        tuple((" | ".join(map(_format_block, blocks)), run_online(blocks)) for blocks in _ROWS)
    )


def run_online(blocks: Sequence[Sequence[float]]) -> Matrix:
    """Maximum, factor, sum, output before and after the division, after each block."""
    top, total, out, n = -math.inf, 0.0, 0.0, 0
    lines = []
    for block in blocks:
        new = max(top, *block)
        factor = math.exp(top - new)
        exps = [math.exp(score - new) for score in block]
        values = [10.0 * (n + i + 1) for i in range(len(block))]
        total = total * factor + sum(exps)
        out = out * factor + sum(e * v for e, v in zip(exps, values, strict=True))
        top, n = new, n + len(block)
        lines.append((top, factor, total, out, out / total))
    rows = tuple(map(_format_block, blocks))
    columns = ("m", "factor", "l", "o", "o / l")
    return Matrix("scores", torch.tensor(lines, dtype=torch.float64), rows, columns)


def _format_block(block: Sequence[float]) -> str:
    return ", ".join(f"{score:g}" for score in block)


MEMORY_PICTURES: dict[str, Callable[[Language], Picture]] = {
    "roofline": _roofline,
    "online-softmax": _online,
}
