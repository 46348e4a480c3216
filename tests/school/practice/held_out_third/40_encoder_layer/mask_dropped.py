# mistake: the mask is not passed on
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
        x = self.attention_norm(x + self.dropout(self.attention(x, x, None)))
        x = self.feed_forward_norm(x + self.dropout(self.feed_forward(x)))
        return x
