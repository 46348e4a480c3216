# mistake: does not limit the share to 0 … 1, so that pairs beyond the thresholds are extrapolated
import math

import torch


def linear(frequencies, factor):
    return frequencies / factor


def ntk(frequencies, factor):
    P = frequencies.shape[0]
    return frequencies / factor ** (torch.arange(P) / (P - 1))


def by_parts(frequencies, factor, original_len, low, high):
    turns = original_len * frequencies / (2 * math.pi)
    kept = (turns - low) / (high - low)
    return kept * frequencies + (1 - kept) * frequencies / factor
