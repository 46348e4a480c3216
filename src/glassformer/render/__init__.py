"""Attention drawn in the terminal, as figures and as a page, from data alone: no model is known.

What is for the terminal is something that rich can print, reads well without colour, and keeps
columns in line where characters are two cells wide, or none.
Reading order: numbers, marks, paragraph, legend, beside; then matrix, steps, mask; tokens, telling,
choice, heading and difference, which know traces; head_cells and shades (what is shown of a head),
heat, map, attended, head_marks, overview; picture puts them together.
figure (with figure_grid and fonts), page (with packing) and inline are for files and notebooks;
views is what a trace calls; shapes. chart is a figure of measured numbers as data, chart_terminal
and chart_figure draw it. Imports observe, languages, errors, and rich.
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
