# mistake: divides the queries by the fourth root of D but forgets to do the same to the keys
def scaled_scores(q, k):
    # divide both before multiplying, for better precision
    root = q.size(-1) ** 0.25
    q = q / root
    return q.matmul(k.mT)
