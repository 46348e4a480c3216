"""What the plain forms are measured against, written so that no line of it could be theirs."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

# Whole tensors agree to this, values and gradients alike.
EXACT = {"rtol": 1e-10, "atol": 1e-10}
SINGLE = {"rtol": 1e-5, "atol": 1e-5}
PRECISIONS = [(torch.float64, EXACT), (torch.float32, SINGLE)]


def attention_by_loops(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None):
    """Attention number by number in Python's own arithmetic, for (B, H, L, D) and a dense mask."""
    B, H, L, D = q.shape
    S, E = v.shape[-2:]
    q, k, v = q.tolist(), k.tolist(), v.tolist()
    out = torch.zeros(B, H, L, E, dtype=torch.float64)
    weights = torch.zeros(B, H, L, S, dtype=torch.float64)
    allowed = torch.ones(B, H, L, S, dtype=torch.bool) if mask is None else mask.expand(B, H, L, S)
    for b in range(B):
        for h in range(H):
            for i in range(L):
                scores = {
                    j: math.fsum(q[b][h][i][d] * k[b][h][j][d] for d in range(D)) / D**0.5
                    for j in range(S)
                    if allowed[b, h, i, j]
                }
                total = math.fsum(math.exp(score) for score in scores.values())
                for j, score in scores.items():
                    weights[b, h, i, j] = math.exp(score) / total
                for e in range(E):
                    out[b, h, i, e] = math.fsum(
                        math.exp(score) / total * v[b][h][j][e] for j, score in scores.items()
                    )
    return out, weights


def gradients(results: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Pull one fixed, uneven cotangent back from every result to every input.

    Uneven, because rows of weights sum to 1: a constant one would pull back to zero.
    """
    cotangents = [
        torch.arange(result.numel(), dtype=result.dtype).sin().view_as(result) for result in results
    ]
    return torch.autograd.grad(results, inputs, cotangents, retain_graph=True)


def split(x: Tensor, n_heads: int) -> Tensor:
    """(B, L, H·D) → (B, H, L, D), by cutting slices and stacking them."""
    return torch.stack(x.chunk(n_heads, dim=-1), dim=1)


def merge(x: Tensor) -> Tensor:
    """(B, H, L, D) → (B, L, H·D), by laying the heads side by side."""
    return torch.cat(x.unbind(dim=1), dim=-1)


def torch_attention(
    n_heads: int, weights: Sequence[Tensor], biases: Sequence[Tensor] | None = None
) -> nn.MultiheadAttention:
    """torch's module with our q, k, v and out matrices, each (out, in) as nn.Linear stores them."""
    dim = weights[0].shape[0]
    module = nn.MultiheadAttention(
        dim, n_heads, bias=biases is not None, batch_first=True, dtype=weights[0].dtype
    )
    with torch.no_grad():
        module.in_proj_weight.copy_(torch.cat(list(weights[:3])))
        module.out_proj.weight.copy_(weights[3])
        if biases is not None:
            module.in_proj_bias.copy_(torch.cat(list(biases[:3])))
            module.out_proj.bias.copy_(biases[3])
    return module


def torch_gradients(
    module: nn.MultiheadAttention, results: Sequence[Tensor], inputs: Sequence[Tensor]
) -> tuple[Tensor, ...]:
    """Gradients of the inputs, then of the q, k, v and out matrices, then of their biases."""
    parameters = [module.in_proj_weight, module.out_proj.weight]
    if module.in_proj_bias is not None:
        parameters += [module.in_proj_bias, module.out_proj.bias]
    found = gradients(results, [*inputs, *parameters])
    n = len(inputs)
    flat = list(found[:n])
    for joined, last in zip(found[n::2], found[n + 1 :: 2], strict=True):
        flat += [*joined.chunk(3), last]
    return tuple(flat)
