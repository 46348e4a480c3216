# correct: uses NumPy's keywords axis and keepdims, which torch also accepts
import torch


def softmax(scores):
    z = scores - torch.amax(scores, axis=-1, keepdims=True)
    numerator = torch.exp(z)
    denominator = torch.sum(numerator, axis=-1, keepdims=True)
    return numerator / denominator
