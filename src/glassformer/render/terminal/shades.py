"""Weights as shades on a scale, and the legend of the shades."""

import math

from glassformer.languages import Language
from glassformer.render.head_cells import Drawing, Scale
from glassformer.render.marks import SHADES, shade
from glassformer.render.numbers import format_brief
from glassformer.render.paragraph import join_sentences

_LEAST = 1e-9  # so that every visible weight has a mark, however small


def shade_on_scale(weight: float, scale: Scale) -> str:
    """The shade of a weight: the lightest for 0, a blank for a masked one (NaN)."""
    return " " if math.isnan(weight) else shade(max(scale.share(weight), _LEAST))


def shade_legend(
    scale: Scale, drawing: Drawing, language: Language, *, hidden: str | None = None
) -> str:
    """Weights: ░ < 0.0021 ≤ ▒ < 0.0085 ≤ ▓ < 0.0191 ≤ █. ·: hidden by the mask.

    `hidden` is the mark of masked cells; None if there are none.
    """
    say, n = language.say, len(SHADES)
    levels = SHADES[0]
    for i in range(1, n):
        levels += f" < {format_brief(scale.value(i / n))} ≤ {SHADES[i]}"
    by_row = drawing.scale == "row"
    legend = say("look.shades.row", levels=levels) if by_row else say("look.shades", levels=levels)
    if hidden is None:
        return legend
    return join_sentences([legend, say("look.shades.hidden", mark=hidden)], language)
