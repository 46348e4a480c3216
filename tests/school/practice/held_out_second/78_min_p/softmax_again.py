# mistake: applies softmax a second time to the kept probabilities instead of dividing by the sum, so that removed tokens come back
import torch


def min_p_probabilities(logits, min_p, temperature=1.0):
    p = torch.softmax(logits / temperature, dim=-1)
    bar = min_p * p.amax(dim=-1, keepdim=True)
    p = torch.where(p >= bar, p, 0.0)
    return torch.softmax(p, dim=-1)
