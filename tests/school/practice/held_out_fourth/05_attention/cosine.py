# mistake: compares by cosine: queries and keys are normalized to length 1, and nothing is divided by the root of D
import torch
import torch.nn.functional as F


def attention(q, k, v):
    sim = torch.einsum("...ld,...sd->...ls", F.normalize(q, dim=-1), F.normalize(k, dim=-1))
    return torch.einsum("...ls,...se->...le", sim.softmax(-1), v)
