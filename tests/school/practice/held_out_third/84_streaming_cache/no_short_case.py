# mistake: short caches are not treated apart: tokens that are both first and last appear twice
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    kept = torch.cat((torch.arange(min(n_sinks, S)), torch.arange(max(0, S - window), S)))
    return k[:, :, kept], v[:, :, kept], torch.arange(len(kept))
