"""Attention drawn in the terminal, from data alone: nothing here knows a model.

Every function returns something that rich can print, reads well without colour, and keeps columns
in line where characters are two cells wide.
Reading order: numbers, marks, paragraph, legend, beside; then matrix, steps, mask, map; shapes.
Imports attention, languages, errors, and rich.
"""

from glassformer.render.beside import Beside
from glassformer.render.legend import draw_legend
from glassformer.render.map import draw_map
from glassformer.render.mask import draw_mask
from glassformer.render.matrix import draw_scores, draw_weights
from glassformer.render.paragraph import Paragraph
from glassformer.render.steps import draw_steps

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
