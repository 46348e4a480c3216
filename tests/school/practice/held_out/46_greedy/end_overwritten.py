# mistake: marks a sentence as finished before it writes, so its end token is overwritten with pad.
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((source.shape[0], 1), begin)
    finished = torch.zeros(source.shape[0], dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1].argmax(dim=-1)
        finished = finished | (token == end)
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        if finished.all():
            break
    return tokens[:, 1:]
