# mistake: two at once: sines in the first half and cosines in the second, and the exponent is i / dim
import torch


def sinusoidal(positions, dim):
    freq = torch.pow(10000.0, -torch.arange(dim // 2).to(positions) / dim)
    angle = torch.outer(positions, freq)
    return torch.cat((torch.sin(angle), torch.cos(angle)), dim=1)
