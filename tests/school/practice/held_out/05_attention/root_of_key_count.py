# mistake: takes k.shape[-2], the number of keys, for the width.
import math


def attention(q, k, v):
    d = k.shape[-2]
    w = ((q @ k.mT) / math.sqrt(d)).softmax(-1)
    return w @ v
