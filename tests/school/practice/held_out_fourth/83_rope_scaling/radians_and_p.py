# mistake: two at once: turns are counted in radians, and ntk divides i by P
import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    P = frequencies.numel()
    return frequencies * factor ** (-torch.arange(P).to(frequencies) / P)


def by_parts(frequencies, factor, original_len, low, high):
    turns = frequencies * original_len
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return torch.lerp(frequencies / factor, frequencies, share)
