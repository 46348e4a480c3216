# correct: one helper for both sublayers, with the norm handed in
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def _add(self, norm, x, new):
        new = self.dropout(new)
        return norm(new + x)

    def forward(self, x, mask=None):
        x = self._add(self.attention_norm, x, self.attention(x, x, mask))
        return self._add(self.feed_forward_norm, x, self.feed_forward(x))
