# mistake: the product is the wrong way round, so rows are keys and columns are queries.
def scores(q, k):
    return k @ q.transpose(-2, -1)
