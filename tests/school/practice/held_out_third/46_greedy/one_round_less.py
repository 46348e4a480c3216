# mistake: writes max_new - 1 tokens at most: begin is counted as one of them
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((len(source), 1), begin)
    done = torch.zeros(len(source), dtype=torch.bool)
    while tokens.shape[1] < max_new and not done.all():
        best = model(source, tokens)[:, -1].argmax(-1)
        best[done] = pad
        tokens = torch.cat([tokens, best[:, None]], 1)
        done = done | (best == end)
    return tokens[:, 1:]
