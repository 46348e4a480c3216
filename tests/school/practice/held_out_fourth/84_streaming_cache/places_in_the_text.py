# mistake: positions are those in the text, with a gap
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    keep = torch.tensor([s for s in range(S) if s < n_sinks or s >= S - window])
    return k[:, :, keep], v[:, :, keep], keep
