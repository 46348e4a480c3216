# correct: the key-value head of every query head is looked up by index
import torch


def grouped_attention(q, k, v):
    H, K = q.shape[1], k.shape[1]
    reads = [h // (H // K) for h in range(H)]
    out = []
    for h, g in enumerate(reads):
        w = torch.softmax(q[:, h] @ k[:, g].transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
        out.append(w @ v[:, g])
    return torch.stack(out, 1)
