# correct: a loop over pairs of norm and sublayer
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
        steps = [
            (self.attention_norm, lambda y: self.attention(y, y, mask)),
            (self.cross_norm, lambda y: self.cross(y, context, context_mask)),
            (self.feed_forward_norm, self.feed_forward),
        ]
        for norm, sublayer in steps:
            x = norm(x + sublayer(x))
        return x
