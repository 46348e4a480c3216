# mistake: finished sentences are not padded; they go on writing until all are finished
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.shape[0]
    tokens = torch.full((B, 1), begin)
    finished = torch.zeros(B, dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1].argmax(-1)
        tokens = torch.cat((tokens, token[:, None]), dim=1)
        finished = finished | (token == end)
        if finished.all():
            break
    return tokens[:, 1:]
