# mistake: takes dimension 1 (the heads) for that of the tokens, as in the layout (B, S, H, D)
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[1]
    if S > n_sinks + window:
        k = torch.cat((k[:, :n_sinks], k[:, S - window :]), dim=1)
        v = torch.cat((v[:, :n_sinks], v[:, S - window :]), dim=1)
    return k, v, torch.arange(k.shape[1])
