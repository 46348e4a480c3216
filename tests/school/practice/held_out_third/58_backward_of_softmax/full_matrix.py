# correct: the whole matrix of derivatives of each row, times grad
import torch


def softmax_backward(weights, grad):
    jac = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
    return (jac @ grad[..., None])[..., 0]
