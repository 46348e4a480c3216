# mistake: divides by the root of the width of the values
import math


def attention(q, k, v):
    d = v.shape[-1]
    s = q @ k.transpose(-2, -1) / math.sqrt(d)
    return s.softmax(-1) @ v
