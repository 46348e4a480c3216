# mistake: dropout acts on the sum, not on the sublayer's output alone
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm = nn.LayerNorm(dim)
        self.feed_forward_norm = nn.LayerNorm(dim)

    def forward(self, x, mask=None):
        x = self.attention_norm(self.dropout(x + self.attention(x, x, mask)))
        return self.feed_forward_norm(self.dropout(x + self.feed_forward(x)))
