# mistake: divides by D, not by its square root.
def scaled_scores(q, k):
    d_k = q.size(-1)
    return q @ k.transpose(-2, -1) / d_k
