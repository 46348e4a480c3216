# mistake: mean of the products instead of their sum
def scores(q, k):
    return (q.unsqueeze(-2) * k.unsqueeze(-3)).mean(-1)
