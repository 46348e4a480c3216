# correct: multiplies complex numbers of modulus 1
import torch


def rotary(q, k, positions, base=10000.0):
    pairs = q.shape[-1] // 2
    theta = positions.double()[:, None] * base ** (-torch.arange(pairs).double() / pairs)
    turn = torch.polar(torch.ones_like(theta), theta)

    def rotate(x):
        first, second = x.double().split(pairs, dim=-1)
        z = torch.complex(first, second) * turn
        return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)

    return rotate(q), rotate(k)
