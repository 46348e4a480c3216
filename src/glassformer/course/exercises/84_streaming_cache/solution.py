"""A cache that never grows beyond sinks and window."""

import torch
from torch import Tensor


def evict(k: Tensor, v: Tensor, n_sinks: int, window: int) -> tuple[Tensor, Tensor, Tensor]:
    """The first n_sinks and the last `window` tokens, and their positions in the cache"""
    S = k.shape[2]
    if n_sinks + window < S:  # else nothing has to go, and sinks and window would overlap
        kept = torch.cat((torch.arange(n_sinks), torch.arange(S - window, S)))
        k, v = k[:, :, kept], v[:, :, kept]
    return k, v, torch.arange(k.shape[2])
