# mistake: the two norms are exchanged
from torch import nn
class EncoderLayer(nn.Module):
    def __init__(self, attention, feed_forward, dim, dropout):
        super().__init__()
        self.attention, self.feed_forward, self.dropout = attention, feed_forward, dropout
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)
    def forward(self, x, mask=None):
        x = self.feed_forward_norm(x + self.dropout(self.attention(x, x, mask)))
        return self.attention_norm(x + self.dropout(self.feed_forward(x)))
