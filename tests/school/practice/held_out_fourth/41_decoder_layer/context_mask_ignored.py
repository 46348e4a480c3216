# mistake: ignores context_mask: the cross-attention gets no mask
from torch import nn


class DecoderLayer(nn.Module):
    def __init__(self, attention, cross, feed_forward, dim):
        super().__init__()
        self.attention, self.cross, self.feed_forward = attention, cross, feed_forward
        self.attention_norm = nn.LayerNorm(dim)
        self.cross_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(self, x, context, mask=None, context_mask=None):
        h = self.attention_norm(x + self.attention(x, x, mask))
        h = self.cross_norm(h + self.cross(h, context, None))
        return self.feed_forward_norm(h + self.feed_forward(h))
