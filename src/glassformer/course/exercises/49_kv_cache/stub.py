import math

import torch
from torch import nn


class CachedAttention(nn.Module):
    """q of the new tokens; k and v of all tokens, old ones from the cache"""

    def __init__(self, dim):
        super().__init__()
        ...

    def forward(self, x, cache=None): ...
