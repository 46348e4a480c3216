# correct: a boolean mask over the places, index_select, cumsum for the positions
import torch


def evict(k, v, n_sinks, window):
    n_tokens = k.size(-2)
    place = torch.arange(n_tokens)
    stays = (place < n_sinks) | (place >= n_tokens - window)
    chosen = stays.nonzero().squeeze(1)
    positions = stays.long().cumsum(0)[stays] - 1
    return k.index_select(2, chosen), v.index_select(2, chosen), positions
