# mistake: two at once: the negated half is the wrong one, and positions are renumbered from 0.
import torch


def rotary(q, k, positions, base=10000.0):
    L, D = q.shape[-2:]
    inv_freq = base ** (-torch.arange(0, D, 2).double() / D)
    freqs = torch.arange(L).double()[:, None] * inv_freq
    emb = torch.cat((freqs, freqs), dim=-1)

    def rotate_half(x):
        return torch.cat((x[..., D // 2 :], -x[..., : D // 2]), dim=-1)

    def turn(x):
        return (x * emb.cos() + rotate_half(x) * emb.sin()).to(x.dtype)

    return turn(q), turn(k)
