# mistake: the positions are those in the text, with a gap
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    if S <= n_sinks + window:
        return k, v, torch.arange(S)
    kept = torch.cat((torch.arange(n_sinks), torch.arange(S - window, S)))
    return k[:, :, kept], v[:, :, kept], kept
