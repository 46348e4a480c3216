# correct: flattens all leading dimensions, multiplies once and restores them
def linear(x, weight, bias=None):
    flat = x.reshape(-1, x.shape[-1])
    y = flat.mm(weight.t())
    if bias is not None:
        y += bias[None, :]
    return y.reshape(*x.shape[:-1], weight.shape[0])
