# correct: scales the queries before the product, by D to the power of −0.5
def scaled_scores(queries, keys):
    return (queries * queries.shape[-1] ** -0.5) @ keys.transpose(-1, -2)
