"""Drawings for the terminal: things that rich can print, readable without colour.

Reading order: columns, legend; matrix, steps, mask; shades, heat_map, pooled_map, top_tokens,
head_marks, overview; picture puts them together. chart and shapes draw measured numbers and models.
"""
