# mistake: the bias is added to x's product twice
def linear(x, weight, bias=None):
    out = x @ weight.T
    if bias is not None:
        out = out + bias
        out += bias
    return out
