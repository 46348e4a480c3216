# mistake: two at once: stops when the tokens including begin number max_new, and returns begin too.
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((source.shape[0], 1), begin)
    finished = torch.zeros(source.shape[0], dtype=torch.bool)
    while tokens.shape[1] < max_new and not finished.all():
        token = model(source, tokens)[:, -1].argmax(-1)
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        finished = finished | (token == end)
    return tokens
