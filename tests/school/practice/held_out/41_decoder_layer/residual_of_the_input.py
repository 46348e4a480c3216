# mistake: two at once: the cross-attention adds the layer's input instead of the current x, and its mask is left out.
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
        x1 = self.attention_norm(x + self.attention(x, x, mask))
        x2 = self.cross_norm(x + self.cross(x1, context, None))
        return self.feed_forward_norm(x2 + self.feed_forward(x2))
