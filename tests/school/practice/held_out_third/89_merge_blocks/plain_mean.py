# mistake: the outputs are averaged with equal shares
import torch


def merge(out_a, lse_a, out_b, lse_b):
    return (out_a + out_b) / 2, torch.logaddexp(lse_a, lse_b)
