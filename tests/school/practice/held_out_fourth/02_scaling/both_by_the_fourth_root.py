# correct: queries and keys are each divided by the fourth root of D
def scaled_scores(q, k):
    root = q.shape[-1] ** 0.25
    return (q / root).matmul((k / root).transpose(-1, -2))
