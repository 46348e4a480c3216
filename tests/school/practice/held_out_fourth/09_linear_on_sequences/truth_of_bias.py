# mistake: asks `if bias:` of a tensor
def linear(x, weight, bias=None):
    y = x @ weight.T
    if bias:
        y = y + bias
    return y
