# mistake: the cross-attention runs before the self-attention
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
        x = self.cross_norm(x + self.cross(x, context, context_mask))
        x = self.attention_norm(x + self.attention(x, x, mask))
        x = self.feed_forward_norm(x + self.feed_forward(x))
        return x
