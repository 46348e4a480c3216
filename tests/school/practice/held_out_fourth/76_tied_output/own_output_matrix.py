# mistake: two at once: no factor of the root of dim, and a copy of the weight is used for the output, so that no gradient reaches it from there
import torch
from torch import nn


class TiedModel(nn.Module):
    def __init__(self, vocab_size, dim, middle):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(vocab_size, dim))
        self.middle = middle

    def forward(self, tokens):
        x = self.weight[tokens]
        return self.middle(x) @ self.weight.detach().clone().T
