# mistake: linear multiplies by the factor instead of dividing
import math

import torch


def linear(frequencies, factor):
    return frequencies * factor


def ntk(frequencies, factor):
    P = len(frequencies)
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
