# correct: a tensor full of pad, filled where a sentence is alive, cut at the end
import torch


def greedy(model, source, begin, end, pad, max_new):
    B = source.size(0)
    text = torch.full((B, max_new + 1), pad)
    text[:, 0] = begin
    alive = torch.ones(B, dtype=torch.bool)
    n = 0
    while n < max_new and alive.any():
        best = model(source, text[:, : n + 1])[:, n].argmax(dim=-1)
        n += 1
        text[alive, n] = best[alive]
        alive = alive & (best != end)
    return text[:, 1 : n + 1]
