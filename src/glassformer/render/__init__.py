"""Drawings of a trace, from data alone: no model is known here.

terminal/, figure/ and page/ draw; what they share lies here: numbers, marks, paragraph; tokens,
informative_heads, focus, heading and difference, which know traces; head_cells and sampled_queries
(what is shown of a head); chart (measured numbers as data); views (what a trace calls).
Imports analysis, tracing, languages, errors, and rich.
"""

from glassformer.render.paragraph import Paragraph
from glassformer.render.terminal.columns import Beside
from glassformer.render.terminal.legend import draw_legend
from glassformer.render.terminal.mask import draw_mask
from glassformer.render.terminal.matrix import draw_scores, draw_weights
from glassformer.render.terminal.pooled_map import draw_map
from glassformer.render.terminal.steps import draw_steps

__all__ = [
    "Beside",
    "Paragraph",
    "draw_legend",
    "draw_map",
    "draw_mask",
    "draw_scores",
    "draw_steps",
    "draw_weights",
]
