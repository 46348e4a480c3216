"""Drawings of a trace, from data alone: no model is known here.

terminal/, figure/ and page/ draw; what they share lies here: numbers, marks, paragraph; tokens,
informative_heads, focus, heading and difference, which know traces; head_cells and sampled_queries
(what is shown of a head); chart (measured numbers as data); views (what a trace calls).
Imports analysis, tracing, languages, errors, and rich. Nothing is re-exported: help screens need a
paragraph, and must not load torch for it.
"""
