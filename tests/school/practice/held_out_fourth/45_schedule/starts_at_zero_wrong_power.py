# mistake: two at once: counts one step more, and the warm-up has the exponent −0.5
def learning_rate(step, dim, warmup):
    step = step + 1
    rising = step * warmup**-0.5
    falling = step**-0.5
    return dim**-0.5 * min(rising, falling)
