# mistake: max instead of min
def learning_rate(step, dim, warmup):
    return dim**-0.5 * max(step**-0.5, step * warmup**-1.5)
