# mistake: only the base's weight is frozen, its bias is still trained
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.base.weight.requires_grad = False
        n_out, n_in = base.weight.shape
        self.lora_a = nn.Parameter(torch.empty(rank, n_in).normal_(std=0.02))
        self.lora_b = nn.Parameter(torch.zeros(n_out, rank))
        self.scale = alpha / rank

    def forward(self, x):
        return self.base(x) + (x @ self.lora_a.T) @ self.lora_b.T * self.scale

    def merged(self):
        new = nn.Linear(self.base.in_features, self.base.out_features)
        new.weight.data = (self.base.weight + self.scale * self.lora_b @ self.lora_a).detach()
        new.bias.data = self.base.bias.detach().clone()
        return new
