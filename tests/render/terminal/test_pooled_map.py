import torch

import glassformer as gf
from glassformer.render.terminal.pooled_map import draw_map
from render.paper import lines


def test_a_causal_map_is_a_triangle():
    # Queries 3, 4, 5 spread evenly: (1/4 + 2/5 + 3/6) / 3 = 0.38 to keys 3 to 5, 0.62 before.
    zeros = torch.zeros(1, 1, 12, 8)
    seen = gf.attention_statistics(zeros, zeros, mask=gf.Causal(), map_size=4)
    assert lines(draw_map(seen.map.share[0, 0])) == ["█", "█▓", "██▓", "███▓"]


def test_an_empty_row_is_blank():
    assert lines(draw_map(torch.tensor([[0.0, 0.0], [0.5, 0.5]]))) == ["", "██"]
