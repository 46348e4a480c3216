# correct: each row in a Python loop over its sorted tokens
import torch


def probabilities(logits, temperature, top_k=None, top_p=None):
    rows = []
    for row in logits / temperature:
        order = row.argsort(descending=True)
        if top_k is not None:
            order = order[:top_k]
        p = torch.softmax(row[order], dim=0)
        if top_p is not None:
            n, reached = 0, 0.0
            while n < len(p) and reached < top_p:
                reached += p[n].item()
                n += 1
            order, p = order[:n], p[:n] / p[:n].sum()
        full = torch.zeros_like(row)
        full[order] = p
        rows.append(full)
    return torch.stack(rows)
