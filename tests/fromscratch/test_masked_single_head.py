import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import (
    EXACT,
    PRECISIONS,
    attention_by_loops,
    gradients,
    torch_attention,
    torch_gradients,
)
from glassformer.fromscratch import (
    MaskedSingleHead,
    SingleHeadLinear,
    look_ahead_mask,
    padding_mask,
)

B, L, C, D = 3, 5, 13, 7
LENGTHS = torch.tensor([5, 3, 0])


def drawn(*rows: str) -> Tensor:
    """A mask as a drawing: ■ may attend, · may not."""
    return torch.tensor([[cell == "■" for cell in row.split()] for row in rows])


def projected(module, x):
    return [layer(x)[:, None] for layer in (module.q_proj, module.k_proj, module.v_proj)]


@pytest.fixture
def module():
    torch.manual_seed(0)
    return MaskedSingleHead(C, D).double()


@pytest.fixture
def x():
    torch.manual_seed(1)
    return torch.randn(B, L, C, dtype=torch.float64, requires_grad=True)


def test_masks_look_as_drawn():
    ahead = drawn("■ · · ·", "■ ■ · ·", "■ ■ ■ ·", "■ ■ ■ ■")
    assert torch.equal(look_ahead_mask(4), ahead)
    padding = padding_mask(torch.tensor([2, 0]), 4)
    assert torch.equal(padding[0], drawn("■ ■ · ·"))
    assert torch.equal(padding[1], drawn("· · · ·"))
    both = look_ahead_mask(4) & padding
    assert torch.equal(both[0], drawn("■ · · ·", "■ ■ · ·", "■ ■ · ·", "■ ■ · ·"))


def test_masks_are_those_of_the_library():
    assert torch.equal(look_ahead_mask(L), gf.Causal().dense(L, L)[0, 0])
    theirs = gf.Padding(LENGTHS).dense(L, L, batch=B)
    assert torch.equal(padding_mask(LENGTHS, L).expand(B, L, L), theirs.expand(B, 1, L, L)[:, 0])


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(dtype, tolerance, module, x):
    module = module.to(dtype)
    x = x.detach().to(dtype).requires_grad_()
    q, k, v = projected(module, x)
    rule = gf.Causal() & gf.Padding(LENGTHS)
    theirs = [
        gf.attention(q, k, v, mask=rule)[:, 0],
        gf.attention_weights(q, k, mask=rule)[:, 0],
    ]
    mask = look_ahead_mask(L) & padding_mask(LENGTHS, L)
    by_hand = attention_by_loops(q, k, v, mask[:, None])
    ours = module(x, mask)
    for actual, expected, hand in zip(ours, theirs, by_hand, strict=True):
        assert_close(actual, expected, **tolerance)
        assert_close(actual, hand[:, 0].to(dtype), **tolerance)
    inputs = [x, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


def test_it_is_torchs_module_with_the_masks_turned_over(x):
    torch.manual_seed(0)
    module = MaskedSingleHead(C, C).double()
    lengths = torch.tensor([5, 3, 1])  # no empty row: torch's module would give NaN
    ours = module(x, look_ahead_mask(L) & padding_mask(lengths, L))
    identity = torch.eye(C, dtype=torch.float64)
    layers = (module.q_proj, module.k_proj, module.v_proj)
    theirs = torch_attention(1, [*(layer.weight for layer in layers), identity])
    out, weights = theirs(
        x,
        x,
        x,
        attn_mask=~look_ahead_mask(L),
        key_padding_mask=~padding_mask(lengths, L)[:, 0],
        average_attn_weights=False,
    )
    assert_close(ours[0], out, **EXACT)
    assert_close(ours[1], weights[:, 0], **EXACT)
    found = gradients(ours, [x, *module.parameters()])
    wanted = torch_gradients(theirs, [out, weights[:, 0]], [x])
    for actual, expected in zip(found, wanted[:4], strict=True):
        assert_close(actual, expected, **EXACT)


def test_a_mask_that_hides_nothing_changes_nothing(module, x):
    plain = SingleHeadLinear(C, D).double()
    plain.load_state_dict(module.state_dict())
    everything = torch.ones(L, L, dtype=torch.bool)
    for actual, expected in zip(module(x, everything), plain(x), strict=True):
        assert_close(actual, expected, **EXACT)


def test_hidden_places_are_exactly_zero_and_rows_sum_to_one(module, x):
    mask = look_ahead_mask(L) & padding_mask(LENGTHS, L)
    _, weights = module(x, mask)
    assert torch.equal(weights > 0, mask)
    assert_close(weights.sum(dim=-1), mask.any(dim=-1).double())


def test_rows_with_nothing_allowed_give_zeros_and_zero_gradients(module, x):
    mask = torch.ones(B, L, L, dtype=torch.bool)
    mask[1] = False
    mask[0, 2] = False
    out, weights = module(x, mask)
    assert not out[1].any()
    assert not out[0, 2].any()
    assert not weights[~mask].any()
    empty = gradients([out[1], out[0, 2]], [x, *module.parameters()])
    for gradient in empty:
        assert torch.equal(gradient, torch.zeros_like(gradient))
    for gradient in gradients(module(x, mask), [x, *module.parameters()]):
        assert gradient.isfinite().all()
        assert gradient.any()


def test_what_is_hidden_loses_against_any_score_however_low(module, x):
    # Keys opposite to their queries, and large: the first token's one visible score is about −1e14.
    with torch.no_grad():
        module.k_proj.weight.copy_(-module.q_proj.weight)
    _, weights = module(1e7 * x, look_ahead_mask(L))
    assert weights[:, 0].tolist() == [[1.0, 0.0, 0.0, 0.0, 0.0]] * B


def test_a_nan_that_comes_in_is_not_swept_away(module, x):
    broken = x.detach().clone()
    broken[0, 1, 0] = torch.nan
    mask = look_ahead_mask(L)
    out, weights = module(broken, mask)
    assert torch.equal(weights[0, 1:].isnan(), mask[1:])
    assert out[0, 1:].isnan().all()
    assert out[1:].isfinite().all()


def test_the_future_and_the_padding_cannot_change_the_past(module, x):
    mask = look_ahead_mask(L) & padding_mask(LENGTHS, L)
    other = x.detach().clone()
    other[0, 3:] = 100.0  # the future of token 2
    other[1, 3:] = -100.0  # padding
    before, after = module(x, mask)[0], module(other, mask)[0]
    assert torch.equal(before[0, :3], after[0, :3])
    assert torch.equal(before[1, :3], after[1, :3])
    assert not torch.equal(before[0, 3:], after[0, 3:])


@pytest.mark.plain
@pytest.mark.parametrize(
    ("mask", "got"),
    [
        (torch.ones(B, 1, L, L, dtype=torch.bool), r"torch\.bool of shape \(3, 1, 5, 5\)"),
        (torch.ones(L, dtype=torch.bool), r"torch\.bool of shape \(5,\)"),
        (torch.ones(L, L), r"torch\.float32 of shape \(5, 5\)"),
    ],
)
def test_masks_of_another_rank_or_dtype_are_refused(mask, got):
    with pytest.raises(ValueError, match=rf"mask must be boolean.*got {got}\. "):
        MaskedSingleHead(C, D)(torch.rand(B, L, C), mask)
