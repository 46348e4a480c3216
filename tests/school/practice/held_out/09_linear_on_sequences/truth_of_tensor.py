# mistake: tests `if bias`, which is ambiguous for a tensor with several numbers.
def linear(x, weight, bias=None):
    y = x @ weight.T
    if bias:
        y = y + bias
    return y
