# mistake: counts radians instead of turns: the angle is not divided by 2π
import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    P = frequencies.shape[0]
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
