# correct: merged copies the base with deepcopy and adds to its weight; forward uses F.linear twice
import copy

import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / rank)
        self.lora_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        self.scaling = alpha / rank

    def forward(self, x):
        low = F.linear(x, self.lora_a)
        return self.base(x) + self.scaling * F.linear(low, self.lora_b)

    def merged(self):
        layer = copy.deepcopy(self.base)
        layer.weight.data += self.scaling * (self.lora_b @ self.lora_a).detach()
        return layer
