# mistake: only the attention is repaired, the feed-forward still adds to the normalised x
import math

from torch import nn


class Block(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.attention_norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.feed_forward_norm = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, hidden_dim)
        self.down = nn.Linear(hidden_dim, dim)

    def attend(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores.softmax(dim=-1) @ v

    def feed_forward(self, x):
        return self.down(self.up(x).relu())

    def forward(self, x):
        x = x + self.attend(self.attention_norm(x))
        x = self.feed_forward_norm(x)
        x = x + self.feed_forward(x)
        return x
