# mistake: both signs minus
import torch
def rotary(q, k, positions, base=10000.0):
    P = q.shape[-1] // 2
    f = base ** -(torch.arange(P, dtype=torch.float64) / P)
    a = positions.double()[:, None] * f
    c, s = a.cos(), a.sin()
    def turn(x):
        x1, x2 = x.double().chunk(2, -1)
        return torch.cat((x1 * c - x2 * s, x2 * c - x1 * s), -1).to(x.dtype)
    return turn(q), turn(k)
