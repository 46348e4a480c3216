# mistake: squeeze() also drops the batch when there is a single sentence.
import torch


def greedy(model, source, begin, end, pad, max_new):
    tokens = torch.full((source.shape[0], 1), begin)
    finished = torch.zeros(source.shape[0], dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1:].argmax(-1).squeeze()
        token = torch.where(finished.squeeze(), pad, token)
        tokens = torch.cat([tokens, token[:, None]], dim=1)
        finished = finished | (token == end)
        if finished.all():
            break
    return tokens[:, 1:]
