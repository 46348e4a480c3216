# mistake: reads the token with .item(), which works for a batch of one alone.
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = [begin]
    for _ in range(max_new):
        logits = model(source, torch.tensor([tokens]))
        token = logits[:, -1].argmax(-1).item()
        tokens.append(token)
        if token == end:
            break
    return torch.tensor([tokens[1:]])
