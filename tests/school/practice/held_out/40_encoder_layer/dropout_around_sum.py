# mistake: dropout acts on the sum of x and the sublayer's result.
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        x = self.attention_norm(self.dropout(x + self.attention(x, x, mask)))
        x = self.feed_forward_norm(self.dropout(x + self.feed_forward(x)))
        return x
