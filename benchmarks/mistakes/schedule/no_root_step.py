# mistake: linear decay in place of the root
def learning_rate(step, dim, warmup):
    return dim ** -0.5 * min(1 / step, step * warmup ** -1.5)
