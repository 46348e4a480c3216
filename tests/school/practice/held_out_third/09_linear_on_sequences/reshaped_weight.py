# mistake: the weight is reshaped to (C, F) instead of transposed
def linear(x, weight, bias=None):
    y = x @ weight.reshape(weight.shape[1], weight.shape[0])
    if bias is not None:
        y = y + bias
    return y
