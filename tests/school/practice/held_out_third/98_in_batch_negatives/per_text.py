# correct: each text on its own with boolean indexing; logsumexp minus the diagonal
import torch


def mean_pool(hidden, mask):
    return torch.stack([h[m].mean(dim=0) for h, m in zip(hidden, mask)])


def info_nce(queries, documents, temperature):
    q = queries / queries.norm(dim=1, keepdim=True)
    d = documents / documents.norm(dim=1, keepdim=True)
    s = torch.einsum("bc,nc->bn", q, d) / temperature
    return (torch.logsumexp(s, dim=1) - s.diagonal()).mean()
