"""Pictures of a few numbers, which need no torch: a chapter with these alone opens at once."""

import math
from collections.abc import Callable
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from glassformer.languages import Language

_LONGEST = 28  # cells of a bar


@dataclass(frozen=True, slots=True)
class Bars:
    """Named lengths, and what is written at their ends."""

    bars: tuple[tuple[str, float, str], ...]
    title: str = ""
    full: float | None = None  # the length that fills the picture; the longest unless given


def _distances(language: Language) -> Bars:
    """How many steps information takes from the first of n tokens to the last."""
    n = 64
    ways = [
        ("learn.picture.recurrent", n - 1),
        ("learn.picture.convolution", math.ceil((n - 1) / 2)),  # 3 wide: two more tokens a layer
        ("learn.picture.attention", 1),
    ]
    return Bars(tuple((language.say(key), float(steps), str(steps)) for key, steps in ways))


def _schedule(language: Language) -> Bars:
    """The learning rate of the paper: width 512, 4000 steps of warm-up."""
    steps = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
    rates = [512**-0.5 * min(step**-0.5, step * 4000**-1.5) for step in steps]
    bars = ((f"{s:,}", r, f"{r:.1e}") for s, r in zip(steps, rates, strict=True))
    return Bars(tuple(bars), language.say("learn.picture.rate"))


def _cache(language: Language) -> Bars:
    """Keys and values computed to write n tokens, one at a time."""
    n, say = 100, language.say
    without = n * (n + 1) // 2
    return Bars(
        (
            (say("learn.picture.nocache"), float(without), f"{without:,}"),
            (say("learn.picture.cache"), float(n), f"{n:,}"),
        )
    )


BAR_PICTURES: dict[str, Callable[[Language], Bars]] = {
    "distances": _distances,
    "schedule": _schedule,
    "cache": _cache,
}


def draw_bars(picture: Bars) -> RenderableType:
    """Bars in the terminal, a line each."""
    most = picture.full or max(length for _, length, _ in picture.bars)
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(no_wrap=True)
    grid.add_column(no_wrap=True)
    for name, length, written in picture.bars:
        cells = max(round(_LONGEST * length / most), 1 if length > 0 else 0)
        grid.add_row(name, Text("█" * cells, style="cyan"), written)
    return Group(Text(picture.title, style="bold"), grid) if picture.title else grid
