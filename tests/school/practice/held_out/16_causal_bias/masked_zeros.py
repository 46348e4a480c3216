# correct: fills zeros with −∞ where the column is larger than the row
import torch


def causal_bias(length):
    index = torch.arange(length)
    future = index[None, :] > index[:, None]  # 以后的词
    return torch.zeros(length, length).masked_fill(future, float("-inf"))


def causal_weights(scores):
    bias = causal_bias(scores.size(-1)).type_as(scores)
    return (bias + scores).softmax(-1)
