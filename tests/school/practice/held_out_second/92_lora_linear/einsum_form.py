# correct: one einsum in forward, a new layer loaded from a state dict in merged
import torch
from torch import nn


class LoRALinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        for parameter in self.base.parameters():
            parameter.requires_grad = False
        n_out, n_in = base.weight.shape
        self.rank, self.alpha = rank, alpha
        self.lora_a = nn.Parameter(torch.empty(rank, n_in).uniform_(-0.1, 0.1))
        self.lora_b = nn.Parameter(torch.zeros(n_out, rank))

    def forward(self, x):
        extra = torch.einsum("...i,ri,or->...o", x, self.lora_a, self.lora_b)
        return self.base(x) + extra * self.alpha / self.rank

    def merged(self):
        n_out, n_in = self.base.weight.shape
        layer = nn.Linear(n_in, n_out)
        change = torch.mm(self.lora_b, self.lora_a).detach() * self.alpha / self.rank
        layer.load_state_dict({"weight": self.base.weight + change, "bias": self.base.bias})
        return layer
