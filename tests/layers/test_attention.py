import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same
from glassformer.errors import ConfigError
from glassformer.functional import GrowingCache, Rotary, StaticCache
from glassformer.functional.cache import CrossCache
from glassformer.layers import CrossAttention, SelfAttention

B, L, S, C = 2, 5, 7, 12


def torch_module(layer: SelfAttention) -> torch.nn.MultiheadAttention:
    """PyTorch's own module with the same weights."""
    module = torch.nn.MultiheadAttention(C, layer.n_heads, batch_first=True).double()
    with torch.no_grad():
        module.in_proj_weight.copy_(layer.qkv.weight)
        module.in_proj_bias.copy_(layer.qkv.bias)
        module.out_proj.weight.copy_(layer.out.weight)
        module.out_proj.bias.copy_(layer.out.bias)
    return module


@pytest.mark.parametrize("causal", [False, True])
def test_self_attention_is_torchs(causal: bool) -> None:
    layer = SelfAttention(C, 3, biases="all").double()
    x = torch.randn(B, L, C, dtype=torch.float64)
    hidden = ~gf.Causal().dense(L)[0, 0] if causal else None
    expected, _ = torch_module(layer)(x, x, x, attn_mask=hidden)
    assert_close(layer(x, mask=gf.Causal() if causal else None), expected, 1e-12)


def test_cross_attention_is_torchs_with_another_width() -> None:
    layer = CrossAttention(C, 3, context_dim=10, biases="all").double()
    x, context = torch.randn(B, L, C).double(), torch.randn(B, S, 10).double()
    module = torch.nn.MultiheadAttention(C, 3, kdim=10, vdim=10, batch_first=True).double()
    k_weight, v_weight = layer.kv.weight.chunk(2)
    with torch.no_grad():
        module.q_proj_weight.copy_(layer.q.weight)
        module.k_proj_weight.copy_(k_weight)
        module.v_proj_weight.copy_(v_weight)
        module.in_proj_bias.copy_(torch.cat([layer.q.bias, layer.kv.bias]))
        module.out_proj.weight.copy_(layer.out.weight)
        module.out_proj.bias.copy_(layer.out.bias)
    padded = torch.tensor([[False] * S, [False] * 4 + [True] * 3])
    expected, _ = module(x, context, context, key_padding_mask=padded)
    assert_close(layer(x, context, mask=gf.Padding([S, 4])), expected, 1e-12)


def test_grouped_heads_read_shared_keys() -> None:
    grouped = SelfAttention(C, 4, n_kv_heads=2, head_dim=5).double()
    full = SelfAttention(C, 4, head_dim=5).double()
    q, k, v = grouped.qkv.weight.split([20, 10, 10])
    repeated = (t.unflatten(0, (2, 5)).repeat_interleave(2, 0).flatten(0, 1) for t in (k, v))
    with torch.no_grad():
        full.qkv.weight.copy_(torch.cat([q, *repeated]))
        full.out.weight.copy_(grouped.out.weight)
    x = torch.randn(B, L, C, dtype=torch.float64)
    assert_close(grouped(x, mask=gf.Causal()), full(x, mask=gf.Causal()), 1e-12)


@pytest.mark.parametrize(
    ("biases", "expected"),
    [("none", (False, False)), ("qkv", (True, False)), ("all", (True, True))],
)
def test_biases(biases: str, expected: tuple[bool, bool]) -> None:
    for layer in (SelfAttention(C, 3, biases=biases), CrossAttention(C, 3, biases=biases)):
        first = layer.qkv if isinstance(layer, SelfAttention) else layer.kv
        assert (first.bias is not None, layer.out.bias is not None) == expected


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("head_norm_eps", [None, 1e-6])
def test_steps_with_a_cache_are_the_whole(layout: str, head_norm_eps: float | None) -> None:
    """Token by token over either cache, with rotary places: the same as all at once."""
    layer = SelfAttention(
        C, 2, n_kv_heads=1, head_norm_eps=head_norm_eps, rotary_layout=layout
    ).double()
    rotary = Rotary(6, layout=layout)
    x = torch.randn(B, L, C, dtype=torch.float64)

    def tables(start: int, stop: int):
        return rotary.tables(torch.arange(start, stop), dtype=torch.float64)

    whole = layer(x, mask=gf.Causal(), tables=tables(0, L))
    growing = GrowingCache()
    static = StaticCache(B, 1, 9, 6, dtype=torch.float64)
    for start, stop in ((0, 2), (2, 3), (3, 5)):
        piece, where = x[:, start:stop], tables(start, stop)
        got = layer(piece, mask=gf.Causal(), tables=where, cache=growing)
        assert_close(got, whole[:, start:stop], 1e-12)
        mask = gf.Causal(offset=static.length)
        got = layer(piece, mask=mask, tables=where, cache=static)
        assert_close(got, whole[:, start:stop], 1e-12)


def test_cross_keys_are_computed_once() -> None:
    layer = CrossAttention(C, 3)
    x, context = torch.randn(B, L, C), torch.randn(B, S, C)
    calls = []
    layer.kv.register_forward_hook(lambda *_: calls.append(1))
    cache = CrossCache()
    whole = layer(x, context)
    assert_close(layer(x[:, :2], context, cache=cache), whole[:, :2], 1e-6)
    assert_close(layer(x[:, 2:], context, cache=cache), whole[:, 2:], 1e-6)
    assert len(calls) == 2


def test_core_sees_every_operand_and_changes_nothing() -> None:
    layer = SelfAttention(C, 4, n_kv_heads=2, scale=0.3, softcap=2.0, dropout=0.1).eval()
    x = torch.randn(B, L, C)
    before, seen = layer(x, mask=gf.Causal()), []
    layer.core.register_forward_hook(
        lambda _m, args, kwargs, out: seen.append((args, kwargs, out)), with_kwargs=True
    )
    assert_same(layer(x, mask=gf.Causal()), before)
    ((q, k, v), kwargs, out) = seen[0]
    assert q.shape == (B, 4, L, 3) and k.shape == v.shape == (B, 2, L, 3)
    assert kwargs["scale"] == 0.3 and kwargs["softcap"] == 2.0 and kwargs["dropout"] == 0.0
    assert_same(layer.out(out.transpose(1, 2).flatten(2)), before)
    assert not list(layer.core.parameters())


def test_dropout_acts_while_training_alone() -> None:
    layer = SelfAttention(C, 3, dropout=0.5)
    x = torch.randn(B, 40, C)
    assert not torch.equal(layer(x), layer(x))
    assert_same(layer.eval()(x), layer(x))


@pytest.mark.plain
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"dim": 12, "n_heads": 5}, r"dim=12, n_heads=5. Use another n_heads"),
        ({"dim": 12, "n_heads": 12, "n_kv_heads": 5}, r"n_heads=12, n_kv_heads=5. Use 1, 2, 3, 4"),
        ({"dim": 0, "n_heads": 1}, r"at least 1; got dim=0"),
        ({"dim": 12, "n_heads": 3, "head_dim": 0}, r"head_dim must be at least 1; got 0"),
    ],
)
def test_refusals(settings: dict[str, int], sentence: str) -> None:
    for layer in (SelfAttention, CrossAttention):
        with pytest.raises(ConfigError, match=sentence):
            layer(**settings)
