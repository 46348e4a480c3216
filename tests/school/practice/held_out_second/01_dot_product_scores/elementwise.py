# mistake: multiplies query i with key i only and sums, without comparing all pairs
def scores(q, k):
    return (q * k).sum(dim=-1)
