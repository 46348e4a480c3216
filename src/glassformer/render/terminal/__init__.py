"""Drawings for the terminal, printed by rich and readable without colour.

Reading order: columns, legend; number_table, matrix, steps, mask; shades, heat_map, pooled_map,
top_tokens, head_marks, overview; picture combines them. chart, with cells, and shapes draw
measurements and models.
"""
