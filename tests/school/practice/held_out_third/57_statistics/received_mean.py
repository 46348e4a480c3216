# mistake: received is the mean over the chunks' queries instead of the sum
import math

import torch


def statistics(q, k, chunk):
    ent, got = [], torch.zeros(k.shape[0], dtype=q.dtype)
    for part in q.split(chunk):
        s = part @ k.T / math.sqrt(q.shape[-1])
        w = s.softmax(-1)
        ent.append(s.logsumexp(-1) - (w * s).sum(-1))
        got = got + w.mean(0)
    return torch.cat(ent), got
