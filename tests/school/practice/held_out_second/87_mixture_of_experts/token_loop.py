# correct: loops over tokens and their choices, exactly as the text says it
import torch


def mixture(x, router, up, down, k):
    outputs = []
    for token in x:
        p = torch.softmax(router @ token, dim=0)
        order = torch.argsort(p, descending=True)[:k]
        total = p[order].sum()
        y = torch.zeros_like(token)
        for i in order:
            y = y + p[i] / total * (down[i] @ torch.relu(up[i] @ token))
        outputs.append(y)
    return torch.stack(outputs)
