"""Both ways of masking, measured on a row with nothing allowed."""

import torch


def measure() -> dict[str, float]:
    """The weights with −1e9, and how many of those with −∞ are NaN"""
    scores, mask = torch.tensor([2.0, 1.0, 0.0]), torch.zeros(3, dtype=torch.bool)
    finite = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
    infinite = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    weights = {f"−1e9, w{i}": float(weight) for i, weight in enumerate(finite)}
    return {**weights, "−∞, NaN": float(infinite.isnan().sum())}


answer = "b"
