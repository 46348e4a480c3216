# mistake: the lse of the whole is the sum of both
import torch


def merge(out_a, lse_a, out_b, lse_b):
    both = torch.stack((lse_a, lse_b))
    share = torch.softmax(both, dim=0).nan_to_num(0.0)
    out = share[0, ..., None] * out_a + share[1, ..., None] * out_b
    return out, lse_a + lse_b
