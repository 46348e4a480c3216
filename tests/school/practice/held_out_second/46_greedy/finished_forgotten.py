# mistake: overwrites finished in each round instead of keeping it, so that a sentence goes on after its padding
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((source.shape[0], 1), begin)
    finished = torch.zeros(source.shape[0], dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1].argmax(-1)
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        finished = token == end
        if finished.all():
            break
    return tokens[:, 1:]
