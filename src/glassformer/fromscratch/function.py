"""Attention as one function: no parameters, no module, four lines of arithmetic."""

import math

from jaxtyping import Float
from torch import Tensor, nn


def attention(
    q: Float[Tensor, "... L D"],
    k: Float[Tensor, "... S D"],
    v: Float[Tensor, "... S E"],
    dropout: nn.Dropout | None = None,
) -> tuple[Float[Tensor, "... L E"], Float[Tensor, "... L S"]]:
    """A weighted mean of the values for each query, weighted by how well the keys match it.

        out = softmax(q kᵀ / √D) v

    q and k form dot products, so they share the width D; each key has one value, so k and v share
    the length S. L and S are independent, and so are D and the width E of the values. All
    dimensions before the last two (batch, heads) are batch dimensions.

    The returned weights are those before `dropout`, so each row sums to 1.

    >>> import torch
    >>> q = torch.tensor([[2.0, 0.0]])  # one query
    >>> k = torch.tensor([[2.0, 0.0], [0.0, 2.0], [2.0, 0.0]])  # the first and the last key match
    >>> v = torch.tensor([[10.0], [20.0], [30.0]])
    >>> out, weights = attention(q, k, v)
    >>> [round(w, 3) for w in weights[0].tolist()]
    [0.486, 0.029, 0.486]
    >>> round(out.item(), 3)
    20.0
    """
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q and k must have the same width; got {q.shape[-1]} and {k.shape[-1]}. "
            "Project both to one head_dim."
        )
    if k.shape[-2] != v.shape[-2]:
        raise ValueError(
            f"k and v must have the same length; got {k.shape[-2]} and {v.shape[-2]}. "
            "Make both from one context."
        )
    scores = q @ k.transpose(-2, -1)  # (..., L, D) × (..., D, S) → (..., L, S)
    # A dot product of D independent terms of variance 1 has variance D; dividing by √D restores
    # variance 1, where softmax is neither flat nor saturated (Vaswani et al. 2017, §3.2.1).
    weights = (scores / math.sqrt(q.shape[-1])).softmax(dim=-1)
    kept = weights if dropout is None else dropout(weights)
    return kept @ v, weights  # (..., L, S) × (..., S, E) → (..., L, E)
