# correct: list comprehension for ntk, torch.lerp with where for by_parts
import torch


def linear(frequencies, factor):
    return frequencies * (1 / factor)


def ntk(frequencies, factor):
    P = len(frequencies)
    powers = [factor ** (-i / (P - 1)) for i in range(P)]
    return frequencies * torch.tensor(powers, dtype=frequencies.dtype)


def by_parts(frequencies, factor, original_len, low, high):
    turns = frequencies * original_len / (2 * torch.pi)
    share = (turns - low) / (high - low)
    blend = torch.lerp(frequencies / factor, frequencies, share)
    blend = torch.where(turns >= high, frequencies, blend)
    return torch.where(turns <= low, frequencies / factor, blend)
