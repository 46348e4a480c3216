# mistake: the norm of the attention is used after all three sublayers
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, attention, cross, feed_forward, dim):
        super().__init__()
        self.attention = attention
        self.cross = cross
        self.feed_forward = feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.cross_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(self, x, context, mask=None, context_mask=None):
        steps = (
            lambda t: self.attention(t, t, mask),
            lambda t: self.cross(t, context, context_mask),
            self.feed_forward,
        )
        for step in steps:
            x = self.attention_norm(x + step(x))
        return x
