# correct: one row at a time, the smallest set found with a while loop
import torch


def one_row(row, top_k, top_p):
    order = row.argsort(descending=True).tolist()
    if top_k is not None:
        order = order[:top_k]
    p = torch.softmax(row[order], dim=0)
    if top_p is not None:
        n, reached = 0, 0.0
        while n < len(order) and reached < top_p:
            reached += float(p[n])
            n += 1
        order = order[:n]
    result = torch.zeros_like(row)
    result[order] = torch.softmax(row[order], dim=0)
    return result


def probabilities(logits, temperature, top_k=None, top_p=None):
    return torch.stack([one_row(row / temperature, top_k, top_p) for row in logits])
