# mistake: two at once: no division by √D, and the output is divided by the number of keys.
import torch


def attention(q, k, v):
    weights = torch.softmax(q @ k.transpose(-1, -2), dim=-1)
    return (weights @ v) / k.shape[-2]
