# correct: appends a column of ones to the values, so that one product gives both sums
import torch


def flash_attention(q, k, v, block):
    extended = torch.cat([v, torch.ones_like(v[..., :1])], dim=-1)
    q = q * q.shape[-1] ** -0.5
    best, acc = None, 0
    for some_k, some_v in zip(torch.split(k, block, -2), torch.split(extended, block, -2)):
        scores = torch.einsum("...ld,...sd->...ls", q, some_k)
        here = scores.amax(-1, keepdim=True)
        new = here if best is None else torch.maximum(best, here)
        if best is not None:
            acc = acc * (best - new).exp()
        acc = acc + (scores - new).exp() @ some_v
        best = new
    numerator, denominator = acc[..., :-1], acc[..., -1:]
    return numerator / denominator, (best + denominator.log())[..., 0]
