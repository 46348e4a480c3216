# mistake: the warm-up is step / warmup (exponent -1 instead of -1.5)
def learning_rate(step, dim, warmup):
    return dim**-0.5 * min(step**-0.5, step * warmup**-1)
