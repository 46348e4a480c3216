"""Masking by addition: 0 where a query may attend, −∞ where it may not, added to the scores.

    scores            bias                      weights
    我   10  8  5       0  −∞  −∞      softmax    1      0      0
    爱    9 12 11   +   0   0  −∞        →        0.047  0.953  0
    你    4  7  9       0   0   0                 0.006  0.118  0.876

Why −∞ and not a large number such as −1e9? The lowest number in float16 is −65504. And where −1e9
fits, it is only a low score: added to a whole row, it leaves nearly equal scores, and softmax
attends to everything equally instead of to nothing.

Why then booleans elsewhere? x − ∞ does not depend on x, but in a row of −∞ the gradient of softmax
is NaN, which reaches the parameters. Here no row is fully masked: every token sees itself.
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


def causal_bias(length: int) -> Float[Tensor, "L L"]:
    """0 on and below the diagonal, −∞ above it.

    >>> causal_bias(3).tolist()
    [[0.0, -inf, -inf], [0.0, 0.0, -inf], [0.0, 0.0, 0.0]]
    """
    # A triangle of ones times −∞ would give NaN: 0 · ∞ is not a number.
    return torch.full((length, length), -math.inf).triu(diagonal=1)


def causal_weights(scores: Float[Tensor, "... L L"]) -> Float[Tensor, "... L L"]:
    """Softmax over the keys that are not in the future.

    >>> scores = torch.tensor([[10.0, 8.0, 5.0], [9.0, 12.0, 11.0], [4.0, 7.0, 9.0]])
    >>> for row in causal_weights(scores).tolist():
    ...     print([round(w, 3) for w in row])
    [1.0, 0.0, 0.0]
    [0.047, 0.953, 0.0]
    [0.006, 0.118, 0.876]
    """
    bias = causal_bias(scores.shape[-1]).to(scores)  # −∞ is the same in every floating dtype
    return (scores + bias).softmax(dim=-1)


class AdditiveMaskSelfAttention(nn.Module):
    """Causal self-attention with one head and an additive mask.

        out = softmax(q kᵀ / √D + bias) v

    >>> attend = AdditiveMaskSelfAttention(dim=6, head_dim=4)
    >>> out, weights = attend(torch.rand(2, 3, 6))
    >>> weights[0, 0].tolist()  # the first token has only itself
    [1.0, 0.0, 0.0]
    """

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(
        self, x: Float[Tensor, "B L C"]
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B L L"]]:
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, L, C) → (B, L, D)
        scores = q @ k.transpose(1, 2) / math.sqrt(self.head_dim)  # (B, L, D) × (B, D, L)
        weights = causal_weights(scores)
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)
