# correct: the share of the first block is the sigmoid of the difference
import torch


def merge(out_a, lse_a, out_b, lse_b):
    nothing = torch.isneginf(lse_a) & torch.isneginf(lse_b)
    difference = (lse_a - lse_b).masked_fill(nothing, 0.0)
    share = torch.sigmoid(difference)[..., None]
    out = share * out_a + (1 - share) * out_b
    lse = torch.logaddexp(lse_a, lse_b).masked_fill(nothing, -torch.inf)
    return out.masked_fill(nothing[..., None], 0.0), lse
