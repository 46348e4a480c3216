# mistake: takes the larger of the two curves instead of the smaller.
def learning_rate(step, dim, warmup):
    return dim**-0.5 * max(step**-0.5, step * warmup**-1.5)
