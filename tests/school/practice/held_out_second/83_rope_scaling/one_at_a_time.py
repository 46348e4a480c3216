# correct: by_parts as a Python loop over single pairs, ntk with logspace exponents
import math

import torch


def linear(frequencies, factor):
    return torch.div(frequencies, factor)


def ntk(frequencies, factor):
    exponents = torch.linspace(0, 1, frequencies.numel(), dtype=frequencies.dtype)
    return frequencies * torch.exp(-exponents * math.log(factor))


def by_parts(frequencies, factor, original_len, low, high):
    out = frequencies.clone()
    for i, w in enumerate(frequencies.tolist()):
        turns = original_len * w / math.tau
        if turns >= high:
            continue
        if turns <= low:
            out[i] = w / factor
        else:
            kept = (turns - low) / (high - low)
            out[i] = w * (kept + (1 - kept) / factor)
    return out
