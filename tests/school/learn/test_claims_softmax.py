"""Claims about scores, softmax and masks, on random numbers."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

import glassformer as gf

SEEDS = pytest.mark.parametrize("seed", range(5))


@SEEDS
def test_softmax_is_positive_keeps_the_order_and_sums_to_one(seed):
    torch.manual_seed(seed)
    scores = 5 * torch.randn(20, dtype=torch.float64)
    weights = scores.softmax(-1)
    assert (scores.exp() > 0).all() and weights.sum() == pytest.approx(1)
    assert torch.equal(weights.argsort(), scores.argsort())


@SEEDS
def test_a_hard_choice_has_no_gradient_and_a_soft_one_has(seed):
    torch.manual_seed(seed)
    scores, values = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    step = 1e-6 * torch.randn(7, dtype=torch.float64)

    def hard(s):
        return values[s.argmax()]

    def soft(s):
        return s.softmax(-1) @ values

    assert hard(scores + step) == hard(scores)
    assert soft(scores + step) != soft(scores)


@SEEDS
def test_the_derivative_of_softmax_is_made_of_its_weights_and_vanishes_when_one_takes_all(seed):
    torch.manual_seed(seed)
    scores = torch.randn(6, dtype=torch.float64)
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    w = scores.softmax(-1)
    assert torch.allclose(jacobian, torch.diag(w) - w[:, None] * w)
    scores[seed] += 2000.0
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    assert scores.softmax(-1)[seed] == 1 and (jacobian == 0).all()


def test_scores_that_differ_by_sixteen_leave_little():
    weights = torch.tensor([16.0, 0.0, -16.0], dtype=torch.float64).softmax(-1)
    assert weights[0] > 1 - 1e-6


def test_numbers_of_sixteen_bits():
    half, brain = torch.finfo(torch.float16), torch.finfo(torch.bfloat16)
    assert half.max == 65504
    assert round(-math.log10(half.eps)) == 3 and round(-math.log10(brain.eps)) == 2


@SEEDS
def test_zeros_after_softmax_renormalized_are_the_mask_before_it(seed):
    torch.manual_seed(seed)
    scores = 3 * torch.randn(6, 6, dtype=torch.float64)
    hidden = torch.ones(6, 6).triu(1).bool()
    before = scores.masked_fill(hidden, -math.inf).softmax(-1)
    after = scores.softmax(-1).masked_fill(hidden, 0)
    assert (after.sum(-1)[:-1] < 1).all()
    assert torch.allclose(after / after.sum(-1, keepdim=True), before)


@SEEDS
def test_the_fused_function_of_torch_shows_where_its_mask_is_true(seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 1, 1, 5, 4).unbind(0)
    only = torch.zeros(5, 5, dtype=torch.bool)
    only[:, seed] = True
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=only)
    assert torch.allclose(out, v[:, :, [seed]].expand_as(out))


@SEEDS
def test_the_causal_flag_of_torch_is_aligned_at_the_top_left(seed):
    torch.manual_seed(seed)
    q, k, v = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 4)
    theirs = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert torch.allclose(theirs, v[:, :, :1])
    ours = gf.attention(q, k, v, mask=gf.Causal())
    assert torch.allclose(ours, F.scaled_dot_product_attention(q, k, v), atol=1e-6)


def test_the_work_of_scores_and_sums():
    L, S, D = 7, 11, 5
    q, k, v = torch.randn(L, D), torch.randn(S, D), torch.randn(S, D)
    with FlopCounterMode(display=False) as counter:
        _ = (q @ k.T).softmax(-1) @ v
    assert counter.get_total_flops() == 4 * L * S * D
    assert 100_000**2 == 10_000_000_000


def test_the_example_by_hand():
    scores = torch.tensor([1.0, 0.0], dtype=torch.float64) / math.sqrt(2)
    assert [round(s, 2) for s in scores.tolist()] == [0.71, 0.0]
    assert [round(e, 2) for e in scores.exp().tolist()] == [2.03, 1.0]
    assert [round(w, 2) for w in scores.softmax(-1).tolist()] == [0.67, 0.33]


@SEEDS
def test_a_key_counts_the_more_the_better_it_matches(seed):
    torch.manual_seed(seed)
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 9, 8)
    dots = (q * k).sum(-1)[0, 0]
    assert torch.equal(gf.attention_weights(q, k)[0, 0, 0].argsort(), dots.argsort())


@SEEDS
def test_different_weights_can_give_the_same_output(seed):
    """Two weightings differ by a direction that the values do not see."""
    torch.manual_seed(seed)
    values = torch.randn(6, 3, dtype=torch.float64)
    seen = torch.cat([values, torch.ones(6, 1)], 1)  # and both must sum to 1
    unseen = torch.linalg.svd(seen.T)[2][-1]
    weights = torch.full((6,), 1 / 6, dtype=torch.float64)
    other = weights + 0.1 * unseen / unseen.abs().max()
    assert (other > 0).all() and other.sum() == pytest.approx(1)
    assert torch.allclose(weights @ values, other @ values)
    assert (weights - other).abs().max() > 0.05
