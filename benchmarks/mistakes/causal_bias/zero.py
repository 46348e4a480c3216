# mistake: the bias is subtracted
import torch
def causal_bias(length):
    return torch.full((length, length), float("-inf")).triu(1)
def causal_weights(scores):
    return (scores - causal_bias(scores.shape[-1]).to(scores.dtype)).softmax(-1)
