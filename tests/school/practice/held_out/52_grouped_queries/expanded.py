# correct: expand and reshape, as in Llama's code
import torch


def grouped_attention(q, k, v):
    B, H, L, D = q.shape
    K, S = k.shape[1], k.shape[2]

    def repeat_kv(x):
        return x[:, :, None].expand(B, K, H // K, S, D).reshape(B, H, S, D)

    scores = torch.matmul(q, repeat_kv(k).transpose(2, 3)) * D**-0.5
    return torch.matmul(torch.softmax(scores, dim=-1), repeat_kv(v))
