"""Blocks against PyTorch's own Transformer layers, weights copied over."""

import pytest
import torch
from torch import nn

import glassformer as gf
from closeness import assert_close
from glassformer.errors import ConfigError
from glassformer.layers import Block, CrossAttention, FeedForward, SelfAttention, norm_maker

B, L, S, C, H, F = 2, 5, 7, 12, 3, 17


def block(norm_place: str, activation: str, *, cross: bool) -> Block:
    return Block(
        attention=SelfAttention(C, H, biases="all"),
        cross=CrossAttention(C, H, biases="all") if cross else None,
        feed_forward=FeedForward(C, F, activation=activation),
        make_norm=norm_maker("layer", C, eps=1e-5),
        norm_place=norm_place,
    )


def copied(ours: Block, theirs: nn.Module) -> None:
    """Our weights into PyTorch's layer."""
    cross = hasattr(theirs, "multihead_attn")
    pairs = {
        "self_attn.in_proj_": ours.attention.qkv,
        "self_attn.out_proj.": ours.attention.out,
        "linear1.": ours.feed_forward.up,
        "linear2.": ours.feed_forward.down,
        "norm1.": ours.attention_norm,
        "norm3." if cross else "norm2.": ours.feed_forward_norm,
    }
    if cross:
        pairs |= {"norm2.": ours.cross_norm, "multihead_attn.out_proj.": ours.cross.out}
    state = {
        f"{name}{kind}": getattr(m, kind)
        for name, m in pairs.items()
        for kind in ("weight", "bias")
    }
    if cross:
        for kind in ("weight", "bias"):
            parts = [getattr(ours.cross.q, kind), getattr(ours.cross.kv, kind)]
            state[f"multihead_attn.in_proj_{kind}"] = torch.cat(parts)
    theirs.load_state_dict({k: v.detach() for k, v in state.items()})


@pytest.mark.parametrize("norm_place", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_encoder_layer(norm_place: str, activation: str, dtype: torch.dtype) -> None:
    ours = block(norm_place, activation, cross=False).to(dtype)
    theirs = nn.TransformerEncoderLayer(
        C, H, F, 0.0, activation, batch_first=True, norm_first=norm_place == "pre"
    ).to(dtype)
    copied(ours, theirs)
    x = torch.randn(B, L, C, dtype=dtype, requires_grad=True)
    padded = torch.tensor([[False] * L, [False] * 3 + [True] * 2])
    got = ours(x, mask=gf.Padding([L, 3]))
    expected = theirs(x, src_key_padding_mask=padded)
    real = ~padded
    assert_close(got[real], expected[real], 1e-5 if dtype == torch.float32 else 1e-12)
    back = torch.randn(int(real.sum()), C, dtype=dtype)
    ours_grad, theirs_grad = (
        torch.autograd.grad(y[real], x, back, retain_graph=True)[0] for y in (got, expected)
    )
    assert_close(ours_grad, theirs_grad, 1e-4 if dtype == torch.float32 else 1e-11)


@pytest.mark.parametrize("norm_place", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_decoder_layer(norm_place: str, activation: str) -> None:
    ours = block(norm_place, activation, cross=True)
    theirs = nn.TransformerDecoderLayer(
        C, H, F, 0.0, activation, batch_first=True, norm_first=norm_place == "pre"
    )
    copied(ours, theirs)
    x, context = torch.randn(B, L, C), torch.randn(B, S, C)
    padded = torch.tensor([[False] * S, [False] * 4 + [True] * 3])
    got = ours(x, mask=gf.Causal(), context=context, context_mask=gf.Padding([S, 4]))
    hidden = ~gf.Causal().dense(L)[0, 0]
    expected = theirs(x, context, tgt_mask=hidden, memory_key_padding_mask=padded)
    assert_close(got, expected, 1e-5)


def test_pre_norm_leaves_a_free_way_around() -> None:
    """With every part silenced a pre-norm block is the identity, a post-norm block is not."""
    x = torch.randn(B, L, C)
    for place in ("pre", "post"):
        silent = block(place, "relu", cross=False)
        with torch.no_grad():
            for part in (silent.attention.out, silent.feed_forward.down):
                part.weight.zero_()
                part.bias.zero_()
        assert torch.equal(silent(x), x) == (place == "pre")


def test_residual_dropout_only_while_training() -> None:
    layer = block("pre", "relu", cross=False)
    layer.dropout = 0.5
    x = torch.randn(B, L, C)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


@pytest.mark.plain
def test_compiles_into_one_graph() -> None:
    layer = block("pre", "gelu", cross=True).eval()
    x, context = torch.randn(B, L, C), torch.randn(B, S, C)

    def run(x, context):
        return layer(x, mask=gf.Causal(), context=context)

    compiled = torch.compile(run, fullgraph=True, backend="aot_eager")
    assert_close(compiled(x, context), run(x, context), 1e-6)


@pytest.mark.plain
def test_refusal() -> None:
    with pytest.raises(ConfigError, match="'pre' or 'post'; got 'around'"):
        block("around", "relu", cross=False)
