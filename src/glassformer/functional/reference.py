"""Attention by its definition: the test oracle for every backend, and what we teach.

scores  = (q · scale) kᵀ          scale = 1/√head_dim (Vaswani et al. 2017, §3.2.1)
scores  = softcap · tanh(scores / softcap)                          if requested
scores  = scores + bias           −∞ where the mask does not allow
weights = softmax(scores)         zeros in a row where nothing is allowed
out     = dropout(weights) v
"""

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from glassformer.functional.autocast import cast_operands
from glassformer.functional.biases import Bias
from glassformer.functional.cells import Tile
from glassformer.functional.checks import check_scoring, check_values
from glassformer.functional.masks import Mask


def attention_weights(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
) -> Float[Tensor, "B H L S"]:
    """How much each query attends to each key: the whole matrix, so only for small inputs.

    >>> q = k = torch.eye(2).view(1, 1, 2, 2)
    >>> attention_weights(q, k, scale=1.0).squeeze()
    tensor([[0.7311, 0.2689],
            [0.2689, 0.7311]])
    """
    q, k, _, bias = cast_operands(q, k, k, bias)  # under torch.autocast
    scoring = check_scoring(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)  # head h reads k of h // (H // K)
    # q is scaled before the product, which could overflow in float16.
    scores = (q * scoring.scale) @ k.transpose(-1, -2)
    scores = scores.to(torch.promote_types(q.dtype, torch.float32))
    if softcap is not None:
        scores = softcap * torch.tanh(scores / softcap)
    whole = Tile.whole(scoring.extent, q.device)
    if scoring.bias is not None:
        scores = scores + scoring.bias.tile(whole)
    if scoring.mask is not None:
        scores = scores.masked_fill(~scoring.mask.tile(whole), -torch.inf)
    # The softmax of a row of −∞ is 0/0. Such a row is computed from zeros and then zeroed, which
    # also keeps NaN out of its gradient.
    empty = scores.isneginf().all(-1, keepdim=True)
    weights = scores.masked_fill(empty, 0.0).softmax(-1).masked_fill(empty, 0.0)
    return weights.to(q.dtype)


def attention(
    q: Float[Tensor, "B H L D"],
    k: Float[Tensor, "B K S D"],
    v: Float[Tensor, "B K S E"],
    *,
    mask: Mask | Bool[Tensor, "..."] | None = None,
    bias: Bias | Float[Tensor, "..."] | None = None,
    scale: float | None = None,
    softcap: float | None = None,
    dropout: float = 0.0,
) -> Float[Tensor, "B H L E"]:
    """The weighted sum of the values, with the weights of `attention_weights`."""
    q, k, v, bias = cast_operands(q, k, v, bias)
    check_values(q, k, v, dropout)
    weights = attention_weights(q, k, mask=mask, bias=bias, scale=scale, softcap=softcap)
    v = v.repeat_interleave(q.shape[1] // v.shape[1], dim=1)
    return F.dropout(weights, dropout) @ v
