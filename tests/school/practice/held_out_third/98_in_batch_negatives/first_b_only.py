# mistake: only the first B documents are candidates, the other negatives are cut off
import torch
import torch.nn.functional as F


def mean_pool(hidden, mask):
    kept = torch.where(mask[..., None], hidden, 0.0)
    return kept.sum(1) / mask.sum(1, keepdim=True)


def info_nce(queries, documents, temperature):
    B = queries.shape[0]
    s = F.normalize(queries, dim=-1) @ F.normalize(documents[:B], dim=-1).T / temperature
    return F.cross_entropy(s, torch.arange(B))
