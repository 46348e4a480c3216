# mistake: puts keys in the rows and queries in the columns: k qᵀ instead of q kᵀ
def scores(q, k):
    return k @ q.transpose(-2, -1)
