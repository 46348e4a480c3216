# correct: F.embedding and F.linear with the same parameter
import torch
import torch.nn.functional as F
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, dim).normal_(std=dim**-0.5))
        self.middle = middle

    def forward(self, tokens):
        hidden = self.middle(F.embedding(tokens, self.weight) * self.weight.size(1) ** 0.5)
        return F.linear(hidden, self.weight)
