# mistake: the values keep only the window, not the sinks: the last n_sinks + window values
import torch


def evict(k, v, n_sinks, window):
    S = k.shape[2]
    if S > n_sinks + window:
        k = torch.cat((k[:, :, :n_sinks], k[:, :, S - window :]), dim=2)
        v = v[:, :, S - n_sinks - window :]
    return k, v, torch.arange(k.shape[2])
