# correct: scale first
def scaled_scores(q, k):
    return (q * q.shape[-1] ** -0.5) @ k.mT
