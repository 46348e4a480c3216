# mistake: divides i by D in place of P, so the frequencies fall half as fast.
import torch


def rotary(q, k, positions, base=10000.0):
    D = q.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(D // 2, dtype=torch.float64) / D)
    freqs = torch.outer(positions.double(), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)

    def half(x):
        return torch.cat((-x[..., D // 2 :], x[..., : D // 2]), dim=-1)

    turn = lambda x: (x * emb.cos() + half(x) * emb.sin()).to(x.dtype)
    return turn(q), turn(k)
