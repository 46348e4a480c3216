# mistake: writes ** -1 / 2, which is half the inverse and not the inverse root.
def learning_rate(step, dim, warmup):
    return dim ** -1 / 2 * min(step ** -1 / 2, step * warmup**-1.5)
