"""Drawings of traces and of what analysis found in them; nothing here knows a model.

terminal/, figure/ and page/ draw. This folder holds what they share: numbers, marks and paragraph;
tokens, informative_heads, focus, heading and difference, which read traces; head_cells and
sampled_queries (the part of a head that is drawn); chart and tree (measurements as data), which
charts/ makes of results; views and result_views (the methods of traces and results).
Imports analysis, tracing, languages, errors, and rich. Nothing is re-exported: help screens need a
paragraph, and must not load torch for it.
"""
