# mistake: two at once: the mask is not passed on, and the result of the feed-forward network gets no dropout
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
        attended = self.attention(x, x, None)
        x = self.attention_norm(x + self.dropout(attended))
        return self.feed_forward_norm(x + self.feed_forward(x))
