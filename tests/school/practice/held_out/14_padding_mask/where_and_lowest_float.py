# correct: torch.where with the lowest finite number, which is enough as every row has a real key
import torch


def padding_mask(lengths, length):
    return torch.stack([torch.arange(length) < n for n in lengths]).unsqueeze(1)


def attention(q, k, v, mask):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    lowest = torch.tensor(torch.finfo(scores.dtype).min, dtype=scores.dtype)
    weights = torch.where(mask, scores, lowest).softmax(-1)
    return weights @ v, weights
