# correct: computes the logarithm of the weights first, then exponentiates
import torch


def softmax(scores):
    shifted = scores - scores.amax(-1, keepdim=True)
    log_weights = shifted - shifted.exp().sum(-1, keepdim=True).log()
    return log_weights.exp()
