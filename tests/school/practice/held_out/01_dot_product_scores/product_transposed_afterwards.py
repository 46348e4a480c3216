# correct: computes the transposed product and transposes the result
def scores(q, k):
    return (k @ q.mT).mT
