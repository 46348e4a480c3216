# mistake: returns top + total as lse
import math, torch
def flash_attention(q, k, v, block):
    m = torch.full_like(q[..., 0], -torch.inf)
    t = torch.zeros_like(m)
    o = q.new_zeros(*q.shape[:-1], v.shape[-1])
    for a in range(0, k.shape[-2], block):
        kk, vv = k[..., a : a + block, :], v[..., a : a + block, :]
        s = q @ kk.mT / math.sqrt(q.shape[-1])
        n = torch.maximum(m, s.amax(-1))
        f = (m - n).exp()
        w = (s - n[..., None]).exp()
        t = t * f + w.sum(-1)
        o = o * f[..., None] + w @ vv
        m = n
    return o / t[..., None], m + t
