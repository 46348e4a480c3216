# mistake: starts with A at zero and B random, the wrong way round
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.zeros(rank, base.in_features))
        self.lora_b = nn.Parameter(torch.randn(base.out_features, rank) * 0.01)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.T @ self.lora_b.T)

    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            layer.weight.copy_(self.base.weight + self.scale * self.lora_b @ self.lora_a)
            layer.bias.copy_(self.base.bias)
        return layer
