# mistake: subtracts the larger lse also where both are −∞, so that rows without any key become NaN
import torch


def merge(out_a, lse_a, out_b, lse_b):
    top = torch.maximum(lse_a, lse_b)
    a = torch.exp(lse_a - top)
    b = torch.exp(lse_b - top)
    out = (a.unsqueeze(-1) * out_a + b.unsqueeze(-1) * out_b) / (a + b).unsqueeze(-1)
    return out, top + torch.log(a + b)
