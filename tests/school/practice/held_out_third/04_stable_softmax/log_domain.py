# correct: exp of (shifted score minus the log of the sum), no division
import torch


def softmax(scores):
    top, _ = torch.max(scores, -1, keepdim=True)
    shifted = scores - top
    # exp(x) / sum = exp(x - log(sum))
    log_sum = shifted.exp().sum(-1, keepdim=True).log()
    return (shifted - log_sum).exp()
