# correct: q and k are each divided by the fourth root of D
def scaled_scores(q, k):
    r = q.shape[-1] ** 0.25
    return (q / r) @ (k / r).mT
