# correct: flattens to two dimensions, multiplies from the left, and restores the shape
def linear(x, weight, bias=None):
    lead = x.shape[:-1]
    flat = x.reshape(-1, x.shape[-1])
    y = (weight @ flat.T).T
    if bias is None:
        return y.reshape(*lead, weight.shape[0])
    return (y + bias).reshape(*lead, weight.shape[0])
