# mistake: normalizes before each sublayer, pre-norm, where post-norm is asked for.
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        h = self.attention_norm(x)
        x = x + self.dropout(self.attention(h, h, mask))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))
