# correct: plain numbers, pair by pair, with if and elif
import math

import torch


def linear(frequencies, factor):
    return torch.stack([f / factor for f in frequencies])


def ntk(frequencies, factor):
    last = len(frequencies) - 1
    return torch.stack([f / factor ** (i / last) for i, f in enumerate(frequencies)])


def by_parts(frequencies, factor, original_len, low, high):
    new = []
    for f in frequencies:
        turns = float(original_len * f) / (2 * math.pi)
        if turns >= high:
            new.append(f)
        elif turns <= low:
            new.append(f / factor)
        else:
            share = (turns - low) / (high - low)
            new.append(f * (share + (1 - share) / factor))
    return torch.stack(new)
