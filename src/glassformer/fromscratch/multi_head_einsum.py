"""Multi-head attention with einsum: every line is a formula, without transposes."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, einsum, nn


class MultiHeadEinsum(nn.Module):
    """Each head has its own matrices, so there is nothing to split, transpose or merge.

        q[b,h,l,d]       = Σ_c   x[b,l,c] · W_q[h,c,d]          likewise k, v from the context
        weights[b,h,l,s] = softmax_s( Σ_d q[b,h,l,d] · k[b,h,s,d] / √D )
        out[b,l,c]       = Σ_h,d (Σ_s weights[b,h,l,s] · v[b,h,s,d]) · W_o[h,d,c]

    The last sum runs over heads and width at once: "concatenate, then multiply by W_o" is a sum of
    what each head writes.

    >>> attend = MultiHeadEinsum(dim=6, n_heads=2)
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
        self.head_dim = dim // n_heads
        self.q_weight = nn.Parameter(torch.empty(n_heads, dim, self.head_dim))
        self.k_weight = nn.Parameter(torch.empty(n_heads, dim, self.head_dim))
        self.v_weight = nn.Parameter(torch.empty(n_heads, dim, self.head_dim))
        self.out_weight = nn.Parameter(torch.empty(n_heads, self.head_dim, dim))
        # Xavier's bound for the (C, C) matrix that the heads form together. xavier_uniform_ would
        # take a 3-D weight for a convolution and compute the wrong fans.
        bound = math.sqrt(6 / (dim + dim))
        for weight in (self.q_weight, self.k_weight, self.v_weight, self.out_weight):
            nn.init.uniform_(weight, -bound, bound)

    def forward(
        self, x: Float[Tensor, "B L C"], context: Float[Tensor, "B S C"] | None = None
    ) -> tuple[Float[Tensor, "B L C"], Float[Tensor, "B H L S"]]:
        context = x if context is None else context
        q = einsum("blc,hcd->bhld", x, self.q_weight)
        k = einsum("bsc,hcd->bhsd", context, self.k_weight)
        v = einsum("bsc,hcd->bhsd", context, self.v_weight)
        weights = (einsum("bhld,bhsd->bhls", q, k) / math.sqrt(self.head_dim)).softmax(dim=-1)
        out = einsum("bhls,bhsd->bhld", weights, v)
        return einsum("bhld,hdc->blc", out, self.out_weight), weights
