"""Each change of shape names its dimensions."""

import math

from einops import einsum, rearrange
from torch import Tensor


def multi_head(q: Tensor, k: Tensor, v: Tensor, n_heads: int) -> Tensor:
    """head_h = softmax(q_h k_hᵀ / √D) v_h        out = [head_1 … head_H]"""
    q, k, v = (rearrange(x, "b l (h d) -> b h l d", h=n_heads) for x in (q, k, v))
    scores = einsum(q, k, "b h l d, b h s d -> b h l s") / math.sqrt(q.shape[-1])
    weights = scores.softmax(dim=-1)
    out = einsum(weights, v, "b h l s, b h s d -> b h l d")
    return rearrange(out, "b h l d -> b l (h d)")
