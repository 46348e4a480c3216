"""The definition against loops over plain numbers, and what it does at the edges."""

import math

import pytest
import torch

import glassformer as gf
from closeness import assert_close, assert_same, assert_zero
from glassformer.functional import reference

B, H, K, L, S, D, E = 2, 6, 3, 5, 7, 11, 13


def operands(dtype: torch.dtype = torch.float64, **sizes: int) -> tuple[torch.Tensor, ...]:
    n = {"B": B, "H": H, "K": K, "L": L, "S": S, "D": D, "E": E} | sizes
    q = torch.randn(n["B"], n["H"], n["L"], n["D"], dtype=dtype)
    k = torch.randn(n["B"], n["K"], n["S"], n["D"], dtype=dtype)
    v = torch.randn(n["B"], n["K"], n["S"], n["E"], dtype=dtype)
    return q, k, v


def by_hand(q, k, v, allowed, bias, scale, softcap):
    """Attention in plain Python numbers, one cell after the other."""
    out = torch.zeros(B, H, L, E, dtype=torch.float64)
    weights = torch.zeros(B, H, L, S, dtype=torch.float64)
    for b in range(B):
        for h in range(H):
            g = h // (H // K)
            for i in range(L):
                scores = {}
                for j in range(S):
                    if not allowed[b, h, i, j]:
                        continue
                    dot = sum(float(q[b, h, i, d]) * float(k[b, g, j, d]) for d in range(D))
                    score = dot * scale
                    if softcap is not None:
                        score = softcap * math.tanh(score / softcap)
                    scores[j] = score + float(bias[b, h, i, j])
                total = sum(math.exp(s) for s in scores.values())
                for j, score in scores.items():
                    weights[b, h, i, j] = math.exp(score) / total
                    for e in range(E):
                        out[b, h, i, e] += weights[b, h, i, j] * float(v[b, g, j, e])
    return out, weights


@pytest.mark.parametrize("softcap", [None, 1.3])
@pytest.mark.parametrize("scale", [None, 0.7])
def test_equals_plain_numbers(softcap: float | None, scale: float | None) -> None:
    q, k, v = operands()
    allowed = torch.rand(B, H, L, S) > 0.4
    allowed[0, 1, 2] = False
    bias = torch.randn(B, H, L, S, dtype=torch.float64)
    options = {"mask": allowed, "bias": bias, "scale": scale, "softcap": softcap}
    out, weights = by_hand(q, k, v, allowed, bias, scale or D**-0.5, softcap)
    assert_close(reference.attention(q, k, v, **options), out, 1e-12)
    assert_close(gf.attention_weights(q, k, **options), weights, 1e-12)


def test_rows_sum_to_one_or_zero() -> None:
    q, k, _ = operands()
    mask = gf.Causal() & gf.Padding([7, 0])
    weights = gf.attention_weights(q, k, mask=mask)
    expected = torch.stack([torch.ones(H, L), torch.zeros(H, L)]).double()
    assert_close(weights.sum(-1), expected, 1e-12)


def test_hidden_cells_have_weight_zero_exactly() -> None:
    q, k, _ = operands()
    mask = gf.Causal()
    weights = gf.attention_weights(q, k, mask=mask)
    assert_zero(weights[(~mask.dense(L, S)).expand_as(weights)])


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16])
def test_dtype_is_kept(dtype: torch.dtype) -> None:
    q, k, v = operands(dtype)
    assert reference.attention(q, k, v).dtype == dtype
    assert gf.attention_weights(q, k, bias=torch.zeros(L, S)).dtype == dtype


def test_softmax_runs_in_float32_even_for_half() -> None:
    """In float16 the sum of 4,096 equal exponentials would be off; the weights are exact powers."""
    q = torch.zeros(1, 1, 1, 8, dtype=torch.float16)
    k = torch.zeros(1, 1, 4096, 8, dtype=torch.float16)
    assert_same(gf.attention_weights(q, k), torch.full((1, 1, 1, 4096), 2.0**-12).half())


def test_dropout_keeps_the_mean_and_drops_whole_weights() -> None:
    q, k, _ = operands(S=401, K=6)
    v = torch.eye(401, dtype=torch.float64).expand(B, H, 401, 401)
    dropped = reference.attention(q, k, v, dropout=0.25)
    weights = gf.attention_weights(q, k)
    kept = dropped != 0
    assert_close(dropped[kept], (weights / 0.75)[kept], 1e-12)
    assert 0.7 < kept.double().mean() < 0.8
    assert_same(reference.attention(q, k, v, dropout=0.0), weights @ v)
