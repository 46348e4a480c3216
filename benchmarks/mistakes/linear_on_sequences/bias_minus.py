# mistake: subtracts the bias
def linear(x, weight, bias=None):
    y = x @ weight.t()
    return y if bias is None else y - bias
