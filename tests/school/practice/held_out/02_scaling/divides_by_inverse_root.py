# mistake: divides by D ** -0.5, so it multiplies by the root.
def scaled_scores(q, k):
    scale = q.shape[-1] ** -0.5
    return q @ k.transpose(-2, -1) / scale
