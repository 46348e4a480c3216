# correct: merged copies the base with deepcopy; forward with F.linear
import copy

import torch
import torch.nn.functional as F
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.base.requires_grad_(False)
        self.scale = alpha / rank
        self.lora_a = nn.Parameter(torch.empty(rank, base.weight.shape[1]))
        self.lora_b = nn.Parameter(torch.zeros(base.weight.shape[0], rank))
        nn.init.kaiming_uniform_(self.lora_a)

    def delta(self):
        return torch.einsum("or,ri->oi", self.lora_b, self.lora_a) * self.scale

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.lora_a), self.lora_b) * self.scale

    @torch.no_grad()
    def merged(self):
        new = copy.deepcopy(self.base)
        new.weight.add_(self.delta())
        return new
