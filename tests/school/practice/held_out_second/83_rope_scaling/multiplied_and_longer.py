# mistake: two at once: linear multiplies the frequencies by the factor; and by_parts counts turns in the longer text, original_len · factor
import math

import torch


def linear(frequencies, factor):
    return frequencies * factor


def ntk(frequencies, factor):
    P = frequencies.shape[0]
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * factor * frequencies / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return kept * frequencies + (1 - kept) * frequencies / factor
