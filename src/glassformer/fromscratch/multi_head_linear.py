"""Multi-head attention as usually written: linear layers, dropout, a mask, self and cross."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn


class MultiHeadLinear(nn.Module):
    """Queries from x; keys and values from the context, or from x itself when none is given.

        out = out_proj([head_1 … head_H])        head_h = dropout(softmax(q_h k_hᵀ / √D)) v_h

        self    x ──┬─ q          cross    x ───── q
                    ├─ k                   context ─┬─ k
                    └─ v                            └─ v

    The mask is True where a query may attend: (L, S) for all, or anything that broadcasts to
    (B, H, L, S). A query with nothing to attend to has zero weights, and out_proj receives a row of
    zeros. The returned weights are those before dropout.

    >>> attend = MultiHeadLinear(dim=6, n_heads=2)
    >>> x, context = torch.rand(3, 5, 6), torch.rand(3, 7, 6)
    >>> out, weights = attend(x, mask=torch.ones(5, 5, dtype=torch.bool).tril())
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 6]), torch.Size([3, 2, 5, 5]))
    >>> out, weights = attend(x, context)
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 6]), torch.Size([3, 2, 5, 7]))
    """

    def __init__(self, dim: int, n_heads: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        if n_heads < 1 or dim % n_heads:
            raise ValueError(
                f"dim must be a multiple of n_heads; got dim={dim}, n_heads={n_heads}. "
                "Choose a number of heads that divides dim."
            )
        self.n_heads = n_heads
        self.head_dim = dim // n_heads
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(dropout)

    def split(self, x: Float[Tensor, "B L C"]) -> Float[Tensor, "B H L D"]:
        # The length is not fixed here, so queries and keys may have different lengths.
        return x.unflatten(-1, (self.n_heads, self.head_dim)).transpose(1, 2)

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        context: Float[Tensor, "B S C"] | None = None,
        *,
        mask: Bool[Tensor, "L S"] | Bool[Tensor, "#B #H #L #S"] | None = None,
    ) -> tuple[Float[Tensor, "B L C"], Float[Tensor, "B H L S"]]:
        context = x if context is None else context
        q = self.split(self.q_proj(x))  # (B, L, C) → (B, H, L, D)
        k = self.split(self.k_proj(context))  # (B, S, C) → (B, H, S, D)
        v = self.split(self.v_proj(context))

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, L, D) → (B, H, L, S)
        if mask is None:
            weights = scores.softmax(dim=-1)
        else:
            # (B, L, S) would broadcast too, with its batch as heads: silently wrong.
            if mask.dtype != torch.bool or mask.dim() not in (2, 4):
                raise ValueError(
                    "mask must be boolean, (L, S) or (B, H, L, S), and True where a query may "
                    f"attend; got {mask.dtype} of shape {tuple(mask.shape)}. "
                    "Write mask[:, None] to give (B, L, S) its head dimension."
                )
            # The second fill is for rows with nothing allowed, where softmax gives NaN.
            weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1).masked_fill(~mask, 0.0)
        out = self.dropout(weights) @ v  # (B, H, L, S) × (B, H, S, D) → (B, H, L, D)

        merged = out.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, C)
        return self.out_proj(merged), weights
