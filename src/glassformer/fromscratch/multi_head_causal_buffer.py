"""Multi-head attention as in language models: no biases, and a causal mask in a buffer."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn


class MultiHeadCausalBuffer(nn.Module):
    """Separate inputs for q, k and v; the mask for max_len tokens is built once, then sliced.

        out = dropout(out_proj([head_1 … head_H]))
        head_h = dropout(softmax(q_h k_hᵀ / √D + causal_bias)) v_h

    Queries are the last L of the S positions of the keys, so the triangle is aligned at the bottom
    right; a query before the first key attends to nothing (0 = allowed, · = hidden):

        L = 2, S = 4   0 0 0 ·        L = 4, S = 2   · ·
                       0 0 0 0                       · ·
                                                     0 ·
                                                     0 0

    The heads need not divide `dim`: head_dim can make them narrower or wider together.

    >>> attend = MultiHeadCausalBuffer(dim=6, n_heads=2, max_len=16)
    >>> x = torch.rand(3, 5, 6)
    >>> out, weights = attend(x, x, x)
    >>> weights[0, 0, 0].tolist()  # the first token has only itself
    [1.0, 0.0, 0.0, 0.0, 0.0]
    >>> torch.allclose(attend(x[:, -2:], x, x)[1], weights[:, :, -2:], atol=1e-6)
    True
    """

    causal_bias: Tensor | None

    def __init__(
        self,
        dim: int,
        n_heads: int,
        *,
        max_len: int,
        head_dim: int | None = None,
        dropout: float = 0.0,
        causal: bool = True,
    ) -> None:
        super().__init__()
        if n_heads < 1 or (head_dim is None and dim % n_heads):
            raise ValueError(
                f"dim must be a multiple of n_heads; got dim={dim}, n_heads={n_heads}. "
                "Choose a number of heads that divides dim, or give head_dim."
            )
        self.n_heads = n_heads
        self.head_dim = dim // n_heads if head_dim is None else head_dim
        self.max_len = max_len
        inner = n_heads * self.head_dim
        self.q_proj = nn.Linear(dim, inner, bias=False)
        self.k_proj = nn.Linear(dim, inner, bias=False)
        self.v_proj = nn.Linear(dim, inner, bias=False)
        self.out_proj = nn.Linear(inner, dim, bias=False)
        self.weights_dropout = nn.Dropout(dropout)
        self.residual_dropout = nn.Dropout(dropout)
        # A buffer moves with the module and is not trained. It is not persistent: a checkpoint
        # should not store max_len² numbers that two lines can compute.
        bias = torch.full((max_len, max_len), -math.inf).triu(diagonal=1) if causal else None
        self.register_buffer("causal_bias", bias, persistent=False)

    def forward(
        self,
        q: Float[Tensor, "B L C"],
        k: Float[Tensor, "B S C"],
        v: Float[Tensor, "B S C"],
    ) -> tuple[Float[Tensor, "B L C"], Float[Tensor, "B H L S"]]:
        L, S = q.shape[1], k.shape[1]
        if max(L, S) > self.max_len:
            raise ValueError(
                f"sequences must be at most max_len={self.max_len} long; got {L} queries and "
                f"{S} keys. Shorten them, or build the module with a larger max_len."
            )
        heads = (self.n_heads, self.head_dim)
        q = self.q_proj(q).unflatten(-1, heads).transpose(1, 2)  # (B, L, C) → (B, H, L, D)
        k = self.k_proj(k).unflatten(-1, heads).transpose(1, 2)  # (B, S, C) → (B, H, S, D)
        v = self.v_proj(v).unflatten(-1, heads).transpose(1, 2)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, L, D) → (B, H, L, S)
        blind = 0
        if self.causal_bias is not None:
            # A row of −∞ would become NaN, so queries before the first key skip softmax.
            blind = max(L - S, 0)
            scores = scores[:, :, blind:] + self.causal_bias[max(S - L, 0) : S, :S]
        # The 8 or 11 significant bits of bfloat16 and float16 are too few for a long sum of exp.
        exact = torch.promote_types(scores.dtype, torch.float32)
        weights = scores.softmax(dim=-1, dtype=exact).to(v.dtype)
        weights = F.pad(weights, (0, 0, blind, 0))  # their rows are zeros

        out = self.weights_dropout(weights) @ v  # (B, H, L, S) × (B, H, S, D) → (B, H, L, D)
        merged = out.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, H·D)
        return self.residual_dropout(self.out_proj(merged)), weights
