# mistake: by_parts forgets 2 pi: turns are counted in radians
import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    P = len(frequencies)
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies
    share = ((turns - low) / (high - low)).clamp(0, 1)
    return share * frequencies + (1 - share) * (frequencies / factor)
