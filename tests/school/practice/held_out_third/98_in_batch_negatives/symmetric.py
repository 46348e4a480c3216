# mistake: the loss is symmetric: the mean of query-to-document and document-to-query
import torch
import torch.nn.functional as F


def mean_pool(hidden, mask):
    kept = hidden.masked_fill(~mask.unsqueeze(2), 0)
    return kept.sum(1) / mask.sum(1, keepdim=True)


def info_nce(queries, documents, temperature):
    s = F.normalize(queries, dim=1) @ F.normalize(documents, dim=1).T / temperature
    labels = torch.arange(len(queries))
    return (F.cross_entropy(s, labels) + F.cross_entropy(s[:, : len(queries)].T, labels)) / 2
