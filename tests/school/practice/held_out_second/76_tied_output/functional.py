# correct: F.embedding and F.linear share the parameter; the scale is dim ** 0.5
import torch
import torch.nn.functional as F
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, dim))
        nn.init.normal_(self.weight, std=dim**-0.5)
        self.middle = middle

    def forward(self, tokens):
        h = F.embedding(tokens, self.weight) * self.weight.shape[1] ** 0.5
        return F.linear(self.middle(h), self.weight)
