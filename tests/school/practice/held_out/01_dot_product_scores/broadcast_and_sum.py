# correct: multiplies all pairs by broadcasting and sums over the width
def scores(q, k):
    pairs = q.unsqueeze(-2) * k.unsqueeze(-3)  # (..., L, S, D)
    return pairs.sum(dim=-1)
