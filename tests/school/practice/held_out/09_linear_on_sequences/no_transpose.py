# mistake: multiplies by the weight as it is stored, (F, C), without the transpose.
def linear(x, weight, bias=None):
    y = x @ weight
    if bias is not None:
        y = y + bias
    return y
