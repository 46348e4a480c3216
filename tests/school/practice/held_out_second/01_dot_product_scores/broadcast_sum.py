# correct: multiplies with broadcasting and sums over the last dimension, no matrix product
def scores(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).sum(-1)
