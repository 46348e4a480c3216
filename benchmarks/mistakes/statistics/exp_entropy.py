# mistake: received divided by the number of queries, entropy in bits
import math, torch
def statistics(q, k, chunk):
    hs, rec = [], torch.zeros(len(k), dtype=k.dtype)
    for r in q.split(chunk):
        s = r @ k.T / math.sqrt(q.shape[-1])
        w = s.softmax(-1)
        hs.append((s.logsumexp(-1) - (w * s).sum(-1)) / math.log(2))
        rec = rec + w.sum(0) / len(q)
    return torch.cat(hs), rec
