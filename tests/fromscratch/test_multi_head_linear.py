import pytest
import torch
from torch.testing import assert_close

import glassformer as gf
from fromscratch.oracle import (
    EXACT,
    PRECISIONS,
    attention_by_loops,
    gradients,
    merge,
    split,
    torch_attention,
    torch_gradients,
)
from glassformer.fromscratch import MultiHeadLinear

B, H, L, S, D = 2, 3, 5, 7, 11
C = H * D
LENGTHS = torch.tensor([4, 7])  # of the context
EMPTY = torch.tensor([0, 7])


def parts(dtype=torch.float64, **options):
    torch.manual_seed(0)
    module = MultiHeadLinear(C, H, **options).to(dtype)
    x = torch.randn(B, L, C, dtype=dtype, requires_grad=True)
    context = torch.randn(B, S, C, dtype=dtype, requires_grad=True)
    return module, x, context


def projected(module, x, context):
    q, k, v = module.q_proj(x), module.k_proj(context), module.v_proj(context)
    return split(q, H), split(k, H), split(v, H)


def layers_of(module):
    return [module.q_proj, module.k_proj, module.v_proj, module.out_proj]


def as_torch(module):
    layers = layers_of(module)
    return torch_attention(H, [l.weight for l in layers], [l.bias for l in layers])


def in_torchs_order(module):
    return [l.weight for l in layers_of(module)] + [l.bias for l in layers_of(module)]


def masks():
    torch.manual_seed(2)
    ragged = torch.rand(B, H, L, S) < 0.6
    ragged[..., 0] = True
    return {
        "none": None,
        "one for all": ragged[0, 0],
        "padding": gf.Padding(LENGTHS).dense(L, S, batch=B),
        "causal": gf.Causal().dense(L, S),
        "one for each head": ragged[:1],
        "all different": ragged,
        "an empty sequence": gf.Padding(EMPTY).dense(L, S, batch=B),
        "an empty row": torch.arange(L)[:, None].expand(L, S) != 2,
    }


MASKS = list(masks())


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(name, dtype, tolerance):
    module, x, context = parts(dtype)
    mask = masks()[name]
    q, k, v = projected(module, x, context)
    theirs = [
        module.out_proj(merge(gf.attention(q, k, v, mask=mask))),
        gf.attention_weights(q, k, mask=mask),
    ]
    mixed, by_hand = attention_by_loops(q, k, v, mask)
    ours = module(x, context, mask=mask)
    assert_close(ours[0], module.out_proj(merge(mixed).to(dtype)), **tolerance)
    assert_close(ours[1], by_hand.to(dtype), **tolerance)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    inputs = [x, context, *module.parameters()]
    found, wanted = gradients(ours, inputs), gradients(theirs, inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize("kind", ["self", "cross"])
def test_it_is_torchs_module(kind):
    module, x, context = parts()
    inputs = [x] if kind == "self" else [x, context]
    theirs = as_torch(module)
    ours = module(*inputs)
    results = theirs(x, inputs[-1], inputs[-1], average_attn_weights=False)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [*inputs, *in_torchs_order(module)])
    for actual, expected in zip(found, torch_gradients(theirs, results, inputs), strict=True):
        assert_close(actual, expected, **EXACT)


def test_it_is_torchs_module_with_the_masks_turned_over():
    module, x, context = parts()
    may = masks()["one for all"]
    real = torch.arange(S) < LENGTHS[:, None]
    ours = module(x, context, mask=may & real[:, None, None])
    theirs = as_torch(module)
    foreign = {"attn_mask": ~may, "key_padding_mask": ~real}
    results = theirs(x, context, context, average_attn_weights=False, **foreign)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [x, context, *in_torchs_order(module)])
    wanted = torch_gradients(theirs, results, [x, context])
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **EXACT)
    # and the library reads torch's two masks for what they are
    q, k, _ = projected(module, x, context)
    assert_close(gf.attention_weights(q, k, mask=gf.from_torch_mha(**foreign)), ours[1], **EXACT)


def test_self_attention_is_cross_attention_to_oneself():
    module, x, _ = parts()
    for actual, expected in zip(module(x), module(x, x), strict=True):
        assert torch.equal(actual, expected)


@pytest.mark.parametrize(("dim", "n_heads", "batch", "length"), [(768, 8, 2, 10), (512, 8, 10, 60)])
def test_the_sizes_of_the_base_models_run(dim, n_heads, batch, length):
    x = torch.rand(batch, length, dim)
    out, weights = MultiHeadLinear(dim, n_heads)(x)
    assert out.shape == (batch, length, dim)
    assert weights.shape == (batch, n_heads, length, length)


def test_queries_with_nothing_to_attend_to_take_nothing_and_give_no_gradient():
    module, x, context = parts()
    mask = gf.Padding(EMPTY).dense(L, S, batch=B)
    out, weights = module(x, context, mask=mask)
    assert not weights[0].any()
    assert torch.equal(out[0], module.out_proj.bias.expand(L, C))
    projections = [module.q_proj.weight, module.k_proj.weight, module.v_proj.weight]
    for gradient in gradients([out[0]], [x, context, *projections]):
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_what_is_hidden_loses_against_any_score_however_low():
    module, x, _ = parts()
    # Keys opposite to their queries, and large: the first token's one visible score is about −1e14.
    with torch.no_grad():
        module.k_proj.weight.copy_(-module.q_proj.weight)
    _, weights = module(1e7 * x, mask=torch.ones(L, L, dtype=torch.bool).tril())
    assert weights[:, :, 0].tolist() == [[[1.0, 0.0, 0.0, 0.0, 0.0]] * H] * B


def test_dropout_does_nothing_in_evaluation():
    module, x, context = parts(dropout=0.5)
    plain, _, _ = parts()
    module.eval()
    for actual, expected in zip(module(x, context), plain(x, context), strict=True):
        assert torch.equal(actual, expected)


def test_dropout_removes_weights_scales_the_survivors_and_steers_the_gradient():
    module, x, context = parts(dropout=0.25)
    seen = []
    module.dropout.register_forward_hook(lambda _, __, kept: seen.append(kept))
    out, weights = module(x, context)
    assert_close(weights.sum(dim=-1), torch.ones(B, H, L, dtype=torch.float64))

    (kept,) = seen
    gone = kept == 0
    assert 0 < gone.sum() < gone.numel()
    assert_close(kept[~gone], weights[~gone] / 0.75)

    q, k, v = projected(module, x, context)
    survived = gf.attention_weights(q, k) * ((~gone).double() / 0.75)
    rebuilt = module.out_proj(merge(survived @ v))
    assert_close(out, rebuilt, **EXACT)
    inputs = [x, context, *module.parameters()]
    found, wanted = gradients([out], inputs), gradients([rebuilt], inputs)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **EXACT)


@pytest.mark.parametrize(("dim", "n_heads"), [(768, 7), (10, 0), (10, -2)])
def test_heads_that_do_not_divide_the_width_are_refused(dim, n_heads):
    with pytest.raises(ValueError, match=f"multiple of n_heads; got dim={dim}, n_heads={n_heads}"):
        MultiHeadLinear(dim, n_heads)


@pytest.mark.plain
@pytest.mark.parametrize(
    ("mask", "got"),
    [
        (torch.ones(H, L, S, dtype=torch.bool), r"torch\.bool of shape \(3, 5, 7\)"),
        (torch.ones(S, dtype=torch.bool), r"torch\.bool of shape \(7,\)"),
        (torch.ones(L, S), r"torch\.float32 of shape \(5, 7\)"),
    ],
)
def test_masks_of_another_rank_or_dtype_are_refused(mask, got):
    with pytest.raises(ValueError, match=rf"mask must be boolean.*got {got}\. Write mask\[:, None"):
        MultiHeadLinear(C, H)(torch.rand(B, L, C), torch.rand(B, S, C), mask=mask)
