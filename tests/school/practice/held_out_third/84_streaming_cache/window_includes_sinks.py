# mistake: the window is shortened by the sinks: `window` tokens in total
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    if S <= n_sinks + window:
        return k, v, torch.arange(S)
    recent = window - n_sinks
    kept = torch.cat((torch.arange(n_sinks), torch.arange(S - max(recent, 0), S)))
    return k[:, :, kept], v[:, :, kept], torch.arange(len(kept))
