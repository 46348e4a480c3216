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
from glassformer.fromscratch import MultiHeadCausalBuffer, MultiHeadLinear

B, H, D = 2, 3, 11
C = H * D
LENGTHS = [(5, 5), (5, 7), (7, 5), (1, 7), (7, 1)]  # (L, S)


def parts(L, S, dtype=torch.float64, **options):
    torch.manual_seed(0)
    module = MultiHeadCausalBuffer(C, H, **{"max_len": 13, **options}).to(dtype)
    shapes = [(B, L, C), (B, S, C), (B, S, C)]
    inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
    return module, inputs


def projected(module, inputs):
    layers = [module.q_proj, module.k_proj, module.v_proj]
    return [split(layer(x), H) for layer, x in zip(layers, inputs, strict=True)]


@pytest.mark.parametrize(("L", "S"), LENGTHS)
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISIONS)
def test_it_is_the_attention_of_the_library(L, S, causal, dtype, tolerance):
    module, inputs = parts(L, S, dtype, causal=causal)
    q, k, v = projected(module, inputs)
    rule = gf.Causal() if causal else None
    theirs = [
        module.out_proj(merge(gf.attention(q, k, v, mask=rule))),
        gf.attention_weights(q, k, mask=rule),
    ]
    ours = module(*inputs)
    for actual, expected in zip(ours, theirs, strict=True):
        assert_close(actual, expected, **tolerance)
    learned = [*inputs, *module.parameters()]
    found, wanted = gradients(ours, learned), gradients(theirs, learned)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **tolerance)


@pytest.mark.parametrize(
    ("L", "S", "rows"),
    [
        (3, 3, ["■ · ·", "■ ■ ·", "■ ■ ■"]),
        (2, 4, ["■ ■ ■ ·", "■ ■ ■ ■"]),
        (4, 2, ["· ·", "· ·", "■ ·", "■ ■"]),
    ],
)
def test_who_sees_whom_is_as_drawn(L, S, rows):
    drawn = torch.tensor([[cell == "■" for cell in row.split()] for row in rows])
    module, inputs = parts(L, S)
    out, weights = module(*inputs)
    assert torch.equal(weights > 0, drawn.expand(B, H, L, S))
    q, k, v = projected(module, inputs)
    mixed, by_hand = attention_by_loops(q, k, v, drawn)
    assert_close(weights, by_hand, **EXACT)
    assert_close(out, module.out_proj(merge(mixed)), **EXACT)


def test_queries_before_the_first_key_give_zeros_and_zero_gradient():
    module, inputs = parts(7, 5)
    out, weights = module(*inputs)
    assert not out[:, :2].any()
    assert not weights[:, :, :2].any()
    for gradient in gradients([out[:, :2]], [*inputs, module.q_proj.weight]):
        assert torch.equal(gradient, torch.zeros_like(gradient))
    (whole,) = gradients([out], inputs[:1])
    assert not whole[:, :2].any()
    assert whole[:, 3:].all()  # query 2 has one key, whose weight is 1 whatever q is


def test_it_is_torchs_module_with_the_mask_turned_over():
    module, inputs = parts(5, 7)
    theirs = torch_attention(H, list(module.parameters()))
    hidden = torch.ones(5, 7, dtype=torch.bool).triu(diagonal=7 - 5 + 1)
    results = theirs(*inputs, attn_mask=hidden, average_attn_weights=False)
    ours = module(*inputs)
    for actual, expected in zip(ours, results, strict=True):
        assert_close(actual, expected, **EXACT)
    found = gradients(ours, [*inputs, *module.parameters()])
    for actual, expected in zip(found, torch_gradients(theirs, results, inputs), strict=True):
        assert_close(actual, expected, **EXACT)


def test_it_is_the_form_with_linear_layers():
    module, (q, _, context) = parts(5, 7)
    linear = MultiHeadLinear(C, H).double()
    missing = linear.load_state_dict(module.state_dict(), strict=False)
    assert all(name.endswith("bias") for name in missing.missing_keys)
    torch.nn.init.zeros_(linear.q_proj.bias)
    torch.nn.init.zeros_(linear.k_proj.bias)
    torch.nn.init.zeros_(linear.v_proj.bias)
    torch.nn.init.zeros_(linear.out_proj.bias)
    mask = torch.ones(5, 7, dtype=torch.bool).tril(diagonal=7 - 5)
    for actual, expected in zip(
        module(q, context, context), linear(q, context, mask=mask), strict=True
    ):
        assert_close(actual, expected, **EXACT)


def test_one_token_at_a_time_gives_what_all_at_once_gives():
    module, (x, _, _) = parts(7, 7)
    whole, _ = module(x, x, x)
    for n in range(1, 8):
        step, _ = module(x[:, n - 1 : n], x[:, :n], x[:, :n])
        assert_close(step[:, 0], whole[:, n - 1], **EXACT)


def test_the_heads_may_be_wider_or_narrower_than_the_model():
    torch.manual_seed(0)
    module = MultiHeadCausalBuffer(13, 3, head_dim=7, max_len=5).double()
    assert module.q_proj.weight.shape == (21, 13)
    assert module.out_proj.weight.shape == (13, 21)
    x = torch.randn(B, 5, 13, dtype=torch.float64)
    q, k, v = projected(module, [x, x, x])
    expected = module.out_proj(merge(gf.attention(q, k, v, mask=gf.Causal())))
    assert_close(module(x, x, x)[0], expected, **EXACT)


def test_nothing_has_a_bias_and_the_buffer_is_neither_trained_nor_saved():
    module, _ = parts(5, 5)
    names = ["q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.weight"]
    assert [name for name, _ in module.named_parameters()] == names
    assert list(module.state_dict()) == names
    assert [name for name, _ in module.named_buffers()] == ["causal_bias"]
    open_module, _ = parts(5, 5, causal=False)
    assert list(open_module.named_buffers()) == []


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_softmax_runs_in_float32_and_comes_back(dtype):
    module, inputs = parts(5, 7, dtype)
    out, weights = module(*inputs)
    assert out.dtype == weights.dtype == dtype
    q, k, _ = projected(module, inputs)
    scores = q @ k.transpose(-2, -1) / D**0.5
    hidden = torch.ones(5, 7, dtype=torch.bool).triu(diagonal=3)
    expected = scores.float().masked_fill(hidden, float("-inf")).softmax(dim=-1).to(dtype)
    assert torch.equal(weights, expected)


def test_dropout_does_nothing_in_evaluation():
    module, inputs = parts(5, 7, dropout=0.5)
    plain, _ = parts(5, 7)
    module.eval()
    for actual, expected in zip(module(*inputs), plain(*inputs), strict=True):
        assert torch.equal(actual, expected)


def test_dropout_acts_on_the_weights_and_on_what_joins_the_residual():
    module, inputs = parts(5, 7, dropout=0.25)
    seen = []
    for dropout in (module.weights_dropout, module.residual_dropout):
        dropout.register_forward_hook(lambda _, given, kept: seen.append((given[0], kept)))
    out, weights = module(*inputs)
    (full, kept), (joining, survived) = seen
    assert torch.equal(full, weights)
    assert torch.equal(survived, out)
    for before, after in [(full, kept), (joining, survived)]:
        gone = (after == 0) & (before != 0)
        assert 0 < gone.sum() < gone.numel()
        assert_close(after[~gone], before[~gone] / 0.75)

    q, k, v = projected(module, inputs)
    drawn = gf.attention_weights(q, k, mask=gf.Causal()) * ((kept != 0).double() / 0.75)
    rebuilt = module.out_proj(merge(drawn @ v)) * ((survived != 0).double() / 0.75)
    assert_close(out, rebuilt, **EXACT)
    learned = [*inputs, *module.parameters()]
    found, wanted = gradients([out], learned), gradients([rebuilt], learned)
    for actual, expected in zip(found, wanted, strict=True):
        assert_close(actual, expected, **EXACT)


@pytest.mark.parametrize(("dim", "n_heads"), [(10, 3), (10, 0), (10, -2)])
def test_heads_that_do_not_divide_the_width_are_refused(dim, n_heads):
    with pytest.raises(ValueError, match=f"multiple of n_heads; got dim={dim}, n_heads={n_heads}"):
        MultiHeadCausalBuffer(dim, n_heads, max_len=5)


@pytest.mark.parametrize(("L", "S"), [(14, 13), (13, 14)])
def test_sequences_longer_than_the_buffer_are_refused(L, S):
    module, inputs = parts(L, S)
    with pytest.raises(ValueError, match=f"max_len=13 long; got {L} queries and {S} keys"):
        module(*inputs)


def test_sequences_as_long_as_the_buffer_are_not():
    module, inputs = parts(13, 13)
    assert module(*inputs)[0].shape == (B, 13, C)
