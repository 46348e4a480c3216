# mistake: the attention's norm is used for both sublayers
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def sub(self, x, y):
        return self.attention_norm(x + self.dropout(y))

    def forward(self, x, mask=None):
        x = self.sub(x, self.attention(x, x, mask))
        return self.sub(x, self.feed_forward(x))
