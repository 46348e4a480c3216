# correct: q and k each divided by the fourth root
def attention(q, k, v):
    r = q.shape[-1] ** 0.25
    return ((q / r) @ (k / r).mT).softmax(-1) @ v
