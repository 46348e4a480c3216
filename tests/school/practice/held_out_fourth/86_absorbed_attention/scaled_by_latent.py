# mistake: scales by the width of the latents
import torch


def absorb(q, w_uk):
    return torch.einsum("bhld,hdr->bhlr", q, w_uk)


def latent_attention(q, c, w_uk, w_uv):
    probe = absorb(q, w_uk)
    w = torch.einsum("bhlr,bsr->bhls", probe, c).div(c.shape[-1] ** 0.5).softmax(-1)
    mixed = torch.einsum("bhls,bsr->bhlr", w, c)
    return torch.einsum("bhlr,her->bhle", mixed, w_uv)
