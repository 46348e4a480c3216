# correct: a buffer of the full length is filled and cut at the end
import torch


@torch.no_grad()
def greedy(model, source, begin, end, pad, max_new):
    B = source.size(0)
    buffer = torch.full((B, max_new + 1), pad, dtype=torch.long, device=source.device)
    buffer[:, 0] = begin
    live = torch.ones(B, dtype=torch.bool, device=source.device)
    n = 0
    while n < max_new and live.any():
        best = model(source, buffer[:, : n + 1])[:, n].argmax(dim=-1)
        n += 1
        buffer[live, n] = best[live]
        live = live & (best != end)
    return buffer[:, 1 : n + 1]
