# correct: a boolean over the tokens
import torch


def evict(k, v, n_sinks, window):
    S = k.size(2)
    place = torch.arange(S, device=k.device)
    keep = (place < n_sinks) | (place >= S - window)
    return k[:, :, keep], v[:, :, keep], torch.arange(int(keep.sum()), device=k.device)
