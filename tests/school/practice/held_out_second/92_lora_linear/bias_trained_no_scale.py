# mistake: two at once: freezes only the weight of the base, not its bias; and merged leaves the scale out
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * 0.01)
        self.lora_b = nn.Parameter(torch.zeros(base.out_features, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.T @ self.lora_b.T)

    def merged(self):
        layer = nn.Linear(self.base.in_features, self.base.out_features)
        with torch.no_grad():
            layer.weight.copy_(self.base.weight + self.lora_b @ self.lora_a)
            layer.bias.copy_(self.base.bias)
        return layer
