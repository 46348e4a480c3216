"""Drawings of a trace; nothing here knows a model.

terminal/, figure/ and page/ draw. This folder holds what they share: numbers, marks and paragraph;
tokens, informative_heads, focus, heading and difference, which read traces; head_cells and
sampled_queries (the part of a head that is drawn); chart (measurements as data); views (the methods
of a trace).
Imports analysis, tracing, languages, errors, and rich. Nothing is re-exported: help screens need a
paragraph, and must not load torch for it.
"""
