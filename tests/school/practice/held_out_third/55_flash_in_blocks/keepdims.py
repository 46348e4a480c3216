# correct: statistics kept with a trailing dimension of size 1, logaddexp for the running lse
import torch


def flash_attention(q, k, v, block):
    q = q * q.shape[-1] ** -0.5
    lse = out = None
    for start in range(0, k.shape[-2], block):
        stop = start + block
        s = q @ k[..., start:stop, :].transpose(-1, -2)
        m = s.max(dim=-1, keepdim=True).values
        e = torch.exp(s - m)
        z = e.sum(dim=-1, keepdim=True)
        part, part_lse = e @ v[..., start:stop, :] / z, m + torch.log(z)
        if out is None:
            out, lse = part, part_lse
        else:
            both = torch.logaddexp(lse, part_lse)
            out = out * torch.exp(lse - both) + part * torch.exp(part_lse - both)
            lse = both
    return out, lse.squeeze(-1)
