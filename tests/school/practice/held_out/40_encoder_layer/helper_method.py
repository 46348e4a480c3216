# correct: a helper method for the pattern norm(x + dropout(result))
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention = attention
        self.feed_forward = feed_forward
        self.dropout = dropout
        self.attention_norm = nn.LayerNorm(normalized_shape=dim)
        self.feed_forward_norm = nn.LayerNorm(normalized_shape=dim)

    def add_and_norm(self, x, result, norm):
        return norm(self.dropout(result) + x)

    def forward(self, x, mask=None):
        after = self.add_and_norm(x, self.attention(x, x, mask), self.attention_norm)
        return self.add_and_norm(after, self.feed_forward(after), self.feed_forward_norm)
