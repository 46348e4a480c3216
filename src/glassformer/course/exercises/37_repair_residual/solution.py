"""A pre-norm block: each sublayer adds to the unnormalized x."""

import math

from torch import Tensor, nn


class Block(nn.Module):
    """A pre-norm block."""

    def __init__(self, dim: int, hidden_dim: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def attend(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)  # (B, L, 3C) → three times (B, L, C)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.softmax(dim=-1) @ v

    def feed_forward(self, x: Tensor) -> Tensor:
        return self.down(self.up(x).relu())

    def forward(self, x: Tensor) -> Tensor:
        # The normalized x goes to the sublayer and is never assigned to x.
        x = x + self.attend(self.attention_norm(x))
        return x + self.feed_forward(self.feed_forward_norm(x))
