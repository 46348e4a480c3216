# mistake: two at once: returns log-probabilities instead of logits; and divides by √dim at the input
import math

import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))
        self.middle = middle
        self.scale = math.sqrt(dim)

    def forward(self, tokens):
        x = self.weight[tokens] / self.scale
        logits = self.middle(x) @ self.weight.T
        return logits.log_softmax(dim=-1)
