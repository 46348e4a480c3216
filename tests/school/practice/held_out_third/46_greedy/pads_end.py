# mistake: the end token itself is replaced by padding
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.shape[0]
    tokens = torch.full((B, 1), begin)
    finished = torch.zeros(B, dtype=torch.bool)
    for _ in range(max_new):
        token = model(source, tokens)[:, -1].argmax(dim=-1)
        finished |= token == end
        token = torch.where(finished, pad, token)
        tokens = torch.cat([tokens, token.unsqueeze(1)], dim=1)
        if finished.all():
            break
    return tokens[:, 1:]
