# correct: pairs as complex numbers, multiplied by e^(iθ) in double precision
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    theta = positions.double()[:, None] * base ** (-torch.arange(P, dtype=torch.float64) / P)
    turn = torch.polar(torch.ones_like(theta), theta)

    def rotate(x):
        pairs = torch.complex(x[..., :P].double(), x[..., P:].double()) * turn
        return torch.cat([pairs.real, pairs.imag], dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
