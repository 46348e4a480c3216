# correct: complex exponentials in double precision, taken apart into imaginary and real parts
import torch


def sinusoidal(positions, dim):
    rate = torch.tensor([10000 ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    wave = torch.exp(1j * positions.double()[:, None] * rate)
    return torch.stack((wave.imag, wave.real), dim=2).flatten(1).to(positions.dtype)
