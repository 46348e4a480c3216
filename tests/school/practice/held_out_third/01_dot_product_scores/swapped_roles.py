# mistake: rows are keys and columns are queries: k times q transposed
def scores(q, k):
    return k @ q.transpose(-1, -2)
