# mistake: splits the query heads as (H // K, K), so distant heads share.
import math


def grouped_attention(q, k, v):
    B, H, L, D = q.shape
    K = k.shape[1]
    q = q.view(B, H // K, K, L, D)
    scores = q @ k.unsqueeze(1).transpose(-2, -1) / math.sqrt(D)
    out = scores.softmax(dim=-1) @ v.unsqueeze(1)
    return out.reshape(B, H, L, D)
