# mistake: only pairs query i with key i, as an elementwise product summed over the width.
def scores(q, k):
    return (q * k).sum(-1)
