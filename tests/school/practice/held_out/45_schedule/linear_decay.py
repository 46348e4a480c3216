# mistake: two at once: the width is not used, and after the warm-up the rate falls like warmup / step.
def learning_rate(step, dim, warmup):
    peak = warmup**-0.5
    if step < warmup:
        return peak * step / warmup
    return peak * warmup / step
