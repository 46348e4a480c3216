# mistake: merged() changes the weight of the base itself
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.scale = alpha / rank
        n_out, n_in = base.weight.shape
        self.lora_a = nn.Parameter(torch.randn(rank, n_in))
        self.lora_b = nn.Parameter(torch.zeros(n_out, rank))

    def delta(self):
        return self.scale * self.lora_b @ self.lora_a

    def forward(self, x):
        return self.base(x) + x @ self.delta().T

    @torch.no_grad()
    def merged(self):
        self.base.weight += self.delta()
        return self.base
