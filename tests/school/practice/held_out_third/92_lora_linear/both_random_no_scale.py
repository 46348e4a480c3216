# mistake: two at once: lora_b is random at the start too, and merged forgets the bias
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.lora_b = nn.Parameter(torch.randn(base.out_features, rank) * 0.1)
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + self.scale * (x @ self.lora_a.T @ self.lora_b.T)

    def merged(self):
        new = nn.Linear(self.base.in_features, self.base.out_features, bias=False)
        with torch.no_grad():
            new.weight.copy_(self.base.weight + self.scale * self.lora_b @ self.lora_a)
        return new
