# mistake: by_parts gives the share to the divided frequency and the rest to the kept one
import math

import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    P = frequencies.shape[0]
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies / (2 * math.pi)
    smooth = ((turns - low) / (high - low)).clamp(0, 1)
    return (1 - smooth) * frequencies + smooth * frequencies / factor
