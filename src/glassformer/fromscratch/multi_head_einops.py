"""Multi-head attention with einops: each change of shape names its dimensions.

The only file here that needs more than torch: `pip install einops`.
"""

import math

from einops import einsum, rearrange
from jaxtyping import Float
from torch import Tensor, nn


class MultiHeadEinops(nn.Module):
    """Linear layers, with split, merge and products in named dimensions.

        split   "b l (h d) -> b h l d"        merge   "b h l d -> b l (h d)"

    The parentheses state the order, heads outside and width inside, which `view` leaves implicit.

    >>> import torch
    >>> attend = MultiHeadEinops(dim=6, n_heads=2)
    >>> out, weights = attend(torch.rand(3, 5, 6), torch.rand(3, 7, 6))
    >>> out.shape, weights.shape
    (torch.Size([3, 5, 6]), torch.Size([3, 2, 5, 7]))
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
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)
        self.v_proj = nn.Linear(dim, dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(
        self, x: Float[Tensor, "B L C"], context: Float[Tensor, "B S C"] | None = None
    ) -> tuple[Float[Tensor, "B L C"], Float[Tensor, "B H L S"]]:
        context = x if context is None else context
        q = rearrange(self.q_proj(x), "b l (h d) -> b h l d", h=self.n_heads)
        k = rearrange(self.k_proj(context), "b s (h d) -> b h s d", h=self.n_heads)
        v = rearrange(self.v_proj(context), "b s (h d) -> b h s d", h=self.n_heads)
        scores = einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(self.head_dim)
        weights = scores.softmax(dim=-1)
        out = einsum(weights, v, "b h l s, b h s d -> b h l d")
        return self.out_proj(rearrange(out, "b h l d -> b l (h d)")), weights
