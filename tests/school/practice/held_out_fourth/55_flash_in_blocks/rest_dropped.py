# mistake: keys after the last whole block are left out
import math

import torch


def flash_attention(q, k, v, block):
    S = k.shape[-2]
    shape = q.shape[:-1]
    m = q.new_full(shape, -math.inf)
    l = q.new_zeros(shape)
    acc = q.new_zeros(*shape, v.shape[-1])
    for i in range(S // block):
        kb, vb = k[..., i * block : (i + 1) * block, :], v[..., i * block : (i + 1) * block, :]
        s = q @ kb.transpose(-2, -1) / math.sqrt(q.shape[-1])
        m_new = torch.maximum(m, s.amax(-1))
        factor = torch.exp(m - m_new)
        p = torch.exp(s - m_new[..., None])
        l = l * factor + p.sum(-1)
        acc = acc * factor[..., None] + p @ vb
        m = m_new
    return acc / l[..., None], m + l.log()
