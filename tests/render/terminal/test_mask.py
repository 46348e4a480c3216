import torch

import glassformer as gf
from glassformer.render.terminal.mask import draw_mask
from render.paper import lines


def test_it_is_the_masks_own_drawing():
    mask = gf.Causal() & gf.Window(1)
    assert lines(draw_mask(mask, 5, 7)) == mask.draw(5, 7).splitlines()


def test_each_sequence_has_its_drawing():
    mask = gf.Padding(torch.tensor([1, 2]))
    assert lines(draw_mask(mask, 1, 3, sequence=0)) == ["■ · ·"]
    assert lines(draw_mask(mask, 1, 3, sequence=1)) == ["■ ■ ·"]


def test_a_large_mask_is_pooled_and_leaves_the_remark_to_the_caller():
    shown = lines(draw_mask(gf.Causal(), 12, 12, most=4))
    assert shown == ["▣ · · ·", "■ ▣ · ·", "■ ■ ▣ ·", "■ ■ ■ ▣"]


def test_more_columns_than_rows():
    assert lines(draw_mask(gf.Causal(), 2, 12, most=4)) == ["■ ■ ■ ▣", "■ ■ ■ ■"]
