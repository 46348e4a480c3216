# correct: einsum throughout, with the scale put into the queries
import torch


def absorb(q, w_uk):
    return torch.einsum("bhld,hdr->bhlr", q, w_uk)


def latent_attention(q, c, w_uk, w_uv):
    asked = absorb(q * q.shape[-1] ** -0.5, w_uk)
    weights = torch.softmax(torch.einsum("bhlr,bsr->bhls", asked, c), dim=3)
    mixed = torch.einsum("bhls,bsr->bhlr", weights, c)
    return torch.einsum("bhlr,her->bhle", mixed, w_uv)
