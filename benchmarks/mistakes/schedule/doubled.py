# mistake: a constant factor of 2
def learning_rate(step, dim, warmup):
    return 2 * dim ** -0.5 * min(step ** -0.5, step * warmup ** -1.5)
