# mistake: adds 1 to the step, as if it were counted from 0.
def learning_rate(step, dim, warmup):
    step = step + 1
    return dim**-0.5 * min(step**-0.5, step * warmup**-1.5)
