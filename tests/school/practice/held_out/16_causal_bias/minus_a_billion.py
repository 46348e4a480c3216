# mistake: uses −1e9 in place of −∞.
import torch


def causal_bias(length):
    return torch.full((length, length), -1e9).triu(diagonal=1)


def causal_weights(scores):
    return (scores + causal_bias(scores.shape[-1]).to(scores)).softmax(dim=-1)
