# correct: one head at a time
import math

import torch


def absorb(q, w_uk):
    return torch.stack([q[:, h] @ w_uk[h] for h in range(len(w_uk))], dim=1)


def latent_attention(q, c, w_uk, w_uv):
    asked = absorb(q, w_uk)
    outs = []
    for h in range(q.shape[1]):
        w = torch.softmax(asked[:, h] @ c.mT / math.sqrt(q.shape[-1]), dim=-1)
        outs.append((w @ c) @ w_uv[h].T)
    return torch.stack(outs, 1)
