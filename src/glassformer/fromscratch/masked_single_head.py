"""Masked self-attention with one head: causal mask and padding mask.

A mask is a tensor of booleans, True where a query may attend to a key. Rules combine with `&`:

    no looking ahead      2 real tokens of 3      both
      k k k                 k k k                   k k k
    q ■ · ·               q ■ ■ ·                 q ■ · ·
    q ■ ■ ·               q ■ ■ ·                 q ■ ■ ·
    q ■ ■ ■               q ■ ■ ·                 q ■ ■ ·
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


def look_ahead_mask(length: int) -> Bool[Tensor, "L L"]:
    """Query i may attend to the keys 0 … i.

    >>> look_ahead_mask(3).int().tolist()
    [[1, 0, 0], [1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(length, length, dtype=torch.bool).tril()


def padding_mask(lengths: Int[Tensor, " B"], length: int) -> Bool[Tensor, "B 1 L"]:
    """Every query may attend to the real tokens of its sequence, but not to padding.

    >>> padding_mask(torch.tensor([2, 3]), 3).int().tolist()
    [[[1, 1, 0]], [[1, 1, 1]]]
    """
    places = torch.arange(length, device=lengths.device)
    return places < lengths[:, None, None]  # (L) < (B, 1, 1) → (B, 1, L)


class MaskedSingleHead(nn.Module):
    """Self-attention with a mask of who may attend to whom.

        weights = softmax(q kᵀ / √D  where the mask is True, −∞ elsewhere)

    >>> attend = MaskedSingleHead(dim=6, head_dim=4)
    >>> mask = look_ahead_mask(3) & padding_mask(torch.tensor([2, 0]), 3)
    >>> out, weights = attend(torch.rand(2, 3, 6), mask)
    >>> (weights > 0).int().tolist()  # the second sequence is all padding
    [[[1, 0, 0], [1, 1, 0], [1, 1, 0]], [[0, 0, 0], [0, 0, 0], [0, 0, 0]]]
    """

    def __init__(self, dim: int, head_dim: int) -> None:
        super().__init__()
        self.head_dim = head_dim
        self.q_proj = nn.Linear(dim, head_dim, bias=False)
        self.k_proj = nn.Linear(dim, head_dim, bias=False)
        self.v_proj = nn.Linear(dim, head_dim, bias=False)

    def forward(
        self,
        x: Float[Tensor, "B L C"],
        mask: Bool[Tensor, "L L"] | Bool[Tensor, "#B #L L"],
    ) -> tuple[Float[Tensor, "B L D"], Float[Tensor, "B L L"]]:
        if mask.dtype != torch.bool or mask.dim() not in (2, 3):
            raise ValueError(
                "mask must be boolean, (L, L) or (B, L, L), and True where a query may attend; "
                f"got {mask.dtype} of shape {tuple(mask.shape)}. "
                "Compare it with something, or drop its head dimension."
            )
        # 1. Mask. masked_fill needs the opposite of "may attend".
        hidden = ~mask
        # 2. Scores, including hidden ones: one product is faster than selecting.
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)  # (B, L, C) → (B, L, D)
        scores = q @ k.transpose(1, 2) / math.sqrt(self.head_dim)  # (B, L, D) × (B, D, L)
        # 3. −∞, before softmax and not a zero after it: exp(−∞) = 0, so a hidden key is missing
        #    from the denominator too, and what remains still sums to 1.
        scores = scores.masked_fill(hidden, -math.inf)
        # 4. Softmax. A row that is −∞ throughout becomes 0 / 0 = NaN.
        weights = scores.softmax(dim=-1)
        # 5. Zeros repair that row: with nothing to attend to, the output is zero. In the backward
        #    pass a filled cell passes no gradient, so the NaN never leaves the two fills.
        weights = weights.masked_fill(hidden, 0.0)
        return weights @ v, weights  # (B, L, L) × (B, L, D) → (B, L, D)
