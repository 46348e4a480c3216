# mistake: reads the prediction at the first position instead of the last.
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.shape[0]
    tokens = torch.full((B, 1), begin)
    finished = torch.zeros(B, dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, 0].argmax(-1)
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        finished |= token == end
        if finished.all():
            break
    return tokens[:, 1:]
