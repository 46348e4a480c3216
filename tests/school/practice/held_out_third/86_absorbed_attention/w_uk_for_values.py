# mistake: the values are made with w_uk
import math

import torch


def absorb(q, w_uk):
    return torch.einsum("bhld,hdr->bhlr", q, w_uk)


def latent_attention(q, c, w_uk, w_uv):
    s = torch.einsum("bhlr,bsr->bhls", absorb(q, w_uk), c) / math.sqrt(q.shape[-1])
    mixed = torch.einsum("bhls,bsr->bhlr", s.softmax(-1), c)
    return torch.einsum("bhlr,her->bhle", mixed, w_uk)
