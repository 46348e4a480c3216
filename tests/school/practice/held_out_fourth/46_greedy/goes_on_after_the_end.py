# mistake: keeps writing after end instead of pad
import torch


def greedy(model, source, begin, end, pad, max_new):
    target = torch.full((source.shape[0], 1), begin, dtype=torch.long)
    finished = torch.zeros(source.shape[0], dtype=torch.bool)
    for _ in range(max_new):
        logits = model(source, target)
        chosen = logits[:, -1].argmax(-1)
        finished |= chosen == end
        target = torch.cat([target, chosen[:, None]], dim=1)
        if finished.all():
            break
    return target[:, 1:]
