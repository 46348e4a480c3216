# correct: writes into a preallocated tensor of pads and cuts it at the end
import torch


def greedy(model, source, begin, end, pad, max_new):
    rows = source.shape[0]
    text = torch.full((rows, max_new + 1), pad, dtype=torch.long)
    text[:, 0] = begin
    alive = torch.ones(rows, dtype=torch.bool)
    written = 0
    while written < max_new and alive.any():
        choice = model(source, text[:, : written + 1])[:, written].max(dim=-1).indices
        written += 1
        text[alive, written] = choice[alive]
        alive &= choice != end
    return text[:, 1 : written + 1]
