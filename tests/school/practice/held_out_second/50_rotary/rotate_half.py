# correct: the rotate_half form of Hugging Face, with cos and sin repeated over both halves
import torch


def _rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(q, k, positions, base=10000.0):
    D = q.shape[-1]
    inv_freq = 1.0 / base ** (torch.arange(0, D, 2, dtype=torch.float32) / D)
    angles = torch.outer(positions.float(), inv_freq)
    emb = torch.cat((angles, angles), dim=-1)
    cos, sin = emb.cos(), emb.sin()
    turned = [(x * cos + _rotate_half(x) * sin).to(x.dtype) for x in (q, k)]
    return turned[0], turned[1]
