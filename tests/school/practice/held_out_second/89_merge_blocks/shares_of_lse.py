# mistake: weighs the outputs by the lse themselves instead of by their exponentials
import torch


def merge(out_a, lse_a, out_b, lse_b):
    total = lse_a + lse_b
    out = (lse_a[..., None] * out_a + lse_b[..., None] * out_b) / total[..., None]
    return out, torch.logaddexp(lse_a, lse_b)
