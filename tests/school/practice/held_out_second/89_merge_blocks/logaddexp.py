# correct: logaddexp for the lse, shares as exp(lse_x − lse), and nan_to_num only where both are empty
import torch


def merge(out_a, lse_a, out_b, lse_b):
    lse = torch.logaddexp(lse_a, lse_b)
    safe = torch.where(lse == -torch.inf, torch.zeros_like(lse), lse)
    share_a = torch.exp(lse_a - safe)[..., None]
    share_b = torch.exp(lse_b - safe)[..., None]
    return share_a * out_a + share_b * out_b, lse
