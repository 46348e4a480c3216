# mistake: keys after the query get no bias, because negative distances are cut to 0
import torch


def alibi(n_heads, n_queries, n_keys):
    slopes = 0.5 ** (8 / n_heads * torch.arange(1, n_heads + 1))
    query_place = torch.arange(n_keys - n_queries, n_keys)
    gap = query_place.unsqueeze(1) - torch.arange(n_keys).unsqueeze(0)
    gap = gap.clamp(min=0).float()
    return -torch.einsum("h,ij->hij", slopes, gap)
