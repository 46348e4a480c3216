import torch


def softmax(scores):
    """weights[..., j] = exp(scores[..., j]) / Σ_k exp(scores[..., k])"""
    ...
