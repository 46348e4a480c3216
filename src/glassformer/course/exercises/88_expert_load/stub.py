import torch


def balance_loss(logits, k):
    """N Σ fᵢ Pᵢ: share of choices times mean probability, for all experts: (T, N) → ()"""
    ...


def fits(experts, n_experts, capacity):
    """Which choices are among the first `capacity` of their expert: (T, k) → (T, k)"""
    ...
