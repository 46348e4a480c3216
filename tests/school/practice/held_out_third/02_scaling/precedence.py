# mistake: operator precedence: D ** 1 / 2 divides by D and then by 2, where D ** (1 / 2) was meant
def scaled_scores(q, k):
    d = q.size(-1)
    return (q @ k.transpose(-2, -1)) / d ** 1 / 2
