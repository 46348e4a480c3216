"""Multi-head self-attention from parameters alone: four matrices and five products."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn


class MultiHeadParameters(nn.Module):
    """Several attention heads in parallel, each on its slice of the width, mixed by W_o.

        head_h = softmax(q_h k_hᵀ / √D) v_h        out = [head_1 … head_H] W_o

        step                  shape          step                   shape
        x                     (B, L, C)      scores, weights        (B, H, L, L)
        x W_q                 (B, L, C)      weights @ v            (B, H, L, D)
        split: C = H · D      (B, L, H, D)   transpose              (B, L, H, D)
        transpose: q, k, v    (B, H, L, D)   merge, W_o             (B, L, C)

    >>> attend = MultiHeadParameters(dim=6, n_heads=2)
    >>> out, weights = attend(torch.rand(3, 5, 6))
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 6]), torch.Size([3, 2, 5, 5]))
    """

    def __init__(self, dim: int, n_heads: int) -> None:
        super().__init__()
        if n_heads < 1 or dim % n_heads:
            raise ValueError(
                f"dim must be a multiple of n_heads; got dim={dim}, n_heads={n_heads}. "
                "Choose a number of heads that divides dim."
            )
        self.n_heads = n_heads
        self.head_dim = dim // n_heads
        self.q_weight = nn.Parameter(torch.empty(dim, dim))
        self.k_weight = nn.Parameter(torch.empty(dim, dim))
        self.v_weight = nn.Parameter(torch.empty(dim, dim))
        self.out_weight = nn.Parameter(torch.empty(dim, dim))
        for weight in (self.q_weight, self.k_weight, self.v_weight, self.out_weight):
            # Xavier preserves the variance of x in each product, and is the same for x @ weight
            # and x @ weightᵀ (Glorot & Bengio 2010). nn.Linear starts smaller, with U(±1/√C).
            nn.init.xavier_uniform_(weight)

    def forward(
        self, x: Float[Tensor, "B L C"]
    ) -> tuple[Float[Tensor, "B L C"], Float[Tensor, "B H L L"]]:
        heads = (self.n_heads, self.head_dim)
        # Transpose before any product: matmul multiplies the last two dimensions and treats the
        # others as batch dimensions, so heads must precede length and width.
        q = (x @ self.q_weight).unflatten(-1, heads).transpose(1, 2)  # (B, L, C) → (B, H, L, D)
        k = (x @ self.k_weight).unflatten(-1, heads).transpose(1, 2)
        v = (x @ self.v_weight).unflatten(-1, heads).transpose(1, 2)

        scores = q @ k.transpose(-2, -1) / math.sqrt(self.head_dim)  # (B, H, L, D) → (B, H, L, L)
        weights = scores.softmax(dim=-1)
        out = weights @ v  # (B, H, L, L) × (B, H, L, D) → (B, H, L, D)

        merged = out.transpose(1, 2).flatten(2)  # (B, H, L, D) → (B, L, C)
        return merged @ self.out_weight, weights
