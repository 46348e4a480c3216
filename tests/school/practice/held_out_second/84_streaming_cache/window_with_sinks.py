# mistake: counts the sinks as a part of the window: keeps only window − n_sinks of the last tokens
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    if S > window:
        recent = torch.arange(S - (window - n_sinks), S)
        kept = torch.cat((torch.arange(n_sinks), recent))
        k, v = k[:, :, kept], v[:, :, kept]
    return k, v, torch.arange(k.shape[2])
