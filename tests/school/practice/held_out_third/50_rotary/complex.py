# correct: complex numbers: each pair is multiplied by exp(i theta)
import torch


def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    freq = torch.tensor([base ** (-i / P) for i in range(P)], dtype=torch.float64)
    turn = torch.polar(torch.ones(1, dtype=torch.float64), positions.double()[:, None] * freq)

    def rotate(x):
        a, b = x.double().split(P, dim=-1)
        z = torch.complex(a, b) * turn
        return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
