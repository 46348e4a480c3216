# mistake: the cross-attention adds to the layer's input, so the self-attention is dropped from the residual
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
        a = self.attention_norm(x + self.attention(x, x, mask))
        c = self.cross_norm(x + self.cross(a, context, context_mask))
        return self.feed_forward_norm(c + self.feed_forward(c))
