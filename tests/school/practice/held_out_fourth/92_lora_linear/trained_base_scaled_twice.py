# mistake: two at once: the base stays trainable, and alpha is not divided by the rank
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.factor = alpha
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + self.factor * (x @ self.lora_a.T @ self.lora_b.T)

    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            layer.weight.copy_(self.base.weight + self.factor * self.lora_b @ self.lora_a)
            layer.bias.copy_(self.base.bias)
        return layer
