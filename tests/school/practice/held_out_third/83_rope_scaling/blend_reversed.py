# mistake: by_parts blends the wrong way round: fast pairs are divided, slow ones kept
import math

import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    i = torch.arange(frequencies.numel(), dtype=frequencies.dtype)
    return frequencies * factor ** (-i / (len(i) - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies / (2 * math.pi)
    ramp = torch.clamp((turns - low) / (high - low), 0, 1)
    return (1 - ramp) * frequencies + ramp * frequencies / factor
