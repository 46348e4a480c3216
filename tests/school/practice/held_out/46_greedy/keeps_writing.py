# mistake: never replaces what follows end by pad.
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((source.shape[0], 1), begin, dtype=torch.long)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1, :].argmax(dim=-1, keepdim=True)
        tokens = torch.cat((tokens, token), dim=1)
        if (tokens == end).any(dim=1).all():
            break
    return tokens[:, 1:]
