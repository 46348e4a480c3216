# correct: compares with broadcasting in a different order and uses torch.where
import torch


def padding_mask(lengths, length):
    positions = torch.arange(length).expand(len(lengths), length)
    return torch.gt(lengths.view(-1, 1), positions).unsqueeze(1)


def attention(q, k, v, mask):
    scores = torch.bmm(q, k.mT) * q.size(-1) ** -0.5
    hidden = torch.tensor(float("-inf"), dtype=scores.dtype)
    weights = torch.softmax(torch.where(mask, scores, hidden), dim=2)
    return torch.bmm(weights, v), weights
