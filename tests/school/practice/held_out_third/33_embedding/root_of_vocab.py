# mistake: multiplied by the root of the vocabulary size
import torch
from torch import nn


class Embedding(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))

    def forward(self, tokens):
        return self.weight[tokens] * self.weight.shape[0] ** 0.5
