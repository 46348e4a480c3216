# mistake: adds the bias to the input, before the product
def linear(x, weight, bias=None):
    if bias is not None:
        x = x + bias
    return x @ weight.T
