# correct: divides both factors by the fourth root of the width
def scaled_scores(q, k):
    root = q.shape[-1] ** 0.25
    return (q / root) @ (k / root).mT
