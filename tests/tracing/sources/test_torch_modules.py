"""PyTorch's own attention watched: its weights are ours, and nothing it computes changes."""

import pytest
import torch
from torch import nn

from closeness import assert_close, assert_same
from glassformer.errors import TraceError
from glassformer.tracing import watch

B, L, S, C, H = 3, 7, 5, 12, 4


def attention(**options) -> nn.MultiheadAttention:
    return nn.MultiheadAttention(C, H, **options).eval()


def causal(n: int) -> torch.Tensor:
    return torch.ones(n, n, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("case", ["plain", "bool", "float", "per head", "padding", "both", "alibi"])
def test_weights_are_those_it_returns(batch_first: bool, case: str) -> None:
    part = attention(batch_first=batch_first)
    x = torch.randn(B, L, C)
    padding = torch.arange(L) >= torch.tensor([L, 3, 5])[:, None]
    options = {
        "plain": {},
        "bool": {"attn_mask": causal(L)},
        "float": {"attn_mask": torch.zeros(L, L).masked_fill(causal(L), -torch.inf)},
        "per head": {"attn_mask": torch.rand(B * H, L, L).round().bool() & causal(L)},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": causal(L), "key_padding_mask": padding},
        "alibi": {"attn_mask": torch.randn(L, L)},
    }[case]
    given = x if batch_first else x.transpose(0, 1)
    expected, weights = part(given, given, given, average_attn_weights=False, **options)
    with watch(part) as trace:
        got, _ = part(given, given, given, average_attn_weights=False, **options)
    assert_same(got, expected)
    assert "forward" not in vars(part)
    for sequence in range(B):
        assert_close(trace["attention"].weights(sequence=sequence), weights[sequence], 1e-6)


def test_other_widths_and_lengths() -> None:
    part = attention(kdim=5, vdim=3, batch_first=True, bias=False)
    q, k, v = torch.randn(B, L, C), torch.randn(B, S, 5), torch.randn(B, S, 3)
    _, weights = part(q, k, v, average_attn_weights=False)
    with watch(part) as trace:
        part(q, k, v, None, False)
        part(q[0], k[0], v[0])
    assert len(trace.runs) == 2
    assert_close(trace.runs[0].sites["attention"].weights(sequence=2), weights[2], 1e-6)
    assert_close(trace["attention"].weights(), weights[0], 1e-6)


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("training", [False, True])
def test_a_whole_encoder_even_by_its_shortcut(norm_first: bool, training: bool) -> None:
    layer = nn.TransformerEncoderLayer(
        C, H, 16, dropout=0.0, batch_first=True, norm_first=norm_first
    )
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(training)
    x = torch.randn(B, L, C)
    with torch.no_grad():
        expected = encoder(x)
        with watch(encoder) as trace:
            got = encoder(x)
    assert_same(got, expected)
    assert trace.names == ["layers.0.self_attn", "layers.1.self_attn"]
    first = encoder.layers[0]
    seen = first.norm1(x) if norm_first else x
    _, weights = first.self_attn(seen, seen, seen, average_attn_weights=False)
    assert_close(trace["layers.0.self_attn"].weights(sequence=1), weights[1].detach(), 1e-5)


def test_a_decoder_with_its_context() -> None:
    layer = nn.TransformerDecoderLayer(C, H, 16, dropout=0.0, batch_first=True)
    decoder = nn.TransformerDecoder(layer, 2).eval()
    x, context = torch.randn(B, L, C), torch.randn(B, S, C)
    mask = nn.Transformer.generate_square_subsequent_mask(L)
    with torch.no_grad():
        expected = decoder(x, context, tgt_mask=mask)
        with watch(decoder) as trace:
            assert_same(decoder(x, context, tgt_mask=mask), expected)
    assert trace["layers.1.multihead_attn"].shape == (B, H, L, S)
    assert trace["layers.1.self_attn"].weights().triu(1).abs().max() == 0


def test_an_error_leaves_the_module_as_it_was() -> None:
    part = attention()
    with pytest.raises(AssertionError, match="expecting embedding"), watch(part):
        part(torch.zeros(2, 1, C + 1), torch.zeros(2, 1, C), torch.zeros(2, 1, C))
    assert "forward" not in vars(part)


@pytest.mark.plain
def test_refusals() -> None:
    with (
        pytest.raises(TraceError, match=r"nn.MultiheadAttention; Linear is none of these"),
        watch(nn.Linear(2, 2)),
    ):
        pass
    part = attention(add_zero_attn=True)
    x = torch.zeros(2, 1, C)
    expected, _ = part(x, x, x)
    with watch(part) as trace:
        assert_same(part(x, x, x)[0], expected)
    with pytest.raises(TraceError, match=r"attention could not .* adds keys of its own, by add_b"):
        trace["attention"]
    with pytest.raises(TraceError, match=r"has heads 0 … 3; got heads=\[7\]"):
        watch(part, heads=[7]).__enter__()


def test_some_heads_and_rows() -> None:
    part, x = attention(batch_first=True), torch.randn(B, L, C)
    _, weights = part(x, x, x, average_attn_weights=False, attn_mask=causal(L))
    with watch(part, heads=[1, 3], rows=slice(2, 5), budget=0) as trace:
        part(x, x, x, attn_mask=causal(L))
    site = trace["attention"]
    assert site.head_numbers == (1, 3) and site.rows == (2, 3, 4)
    assert_close(site.weights(3), weights[0, 3, 2:5], 1e-6)
