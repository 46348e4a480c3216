# mistake: warmup has the exponent −0.5 in place of −1.5.
def learning_rate(step, dim, warmup):
    return dim**-0.5 * min(step**-0.5, step * warmup**-0.5)
