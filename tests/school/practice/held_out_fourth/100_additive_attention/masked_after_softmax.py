# mistake: the weights are multiplied by the mask after softmax
import torch


def additive_attention(hidden, context, w_q, w_k, v, mask):
    a = torch.matmul(hidden, w_q)[:, :, None, :]
    b = torch.matmul(context, w_k)[:, None, :, :]
    energy = torch.tanh(a + b).matmul(v)
    weights = torch.softmax(energy, dim=2) * mask[:, None, :]
    return torch.bmm(weights, context), weights
