# correct: prints the shapes on the way
import math


def attention(q, k, v):
    print("q", q.shape, "k", k.shape, "v", v.shape)
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(q.shape[-1])
    print("scores", scores.shape)
    weights = scores.softmax(dim=-1)
    out = weights @ v
    print("out", out.shape)
    return out
