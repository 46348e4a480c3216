# mistake: reshapes the weight to (C, F) where it should transpose it.
def linear(x, weight, bias=None):
    F, C = weight.shape
    y = x @ weight.reshape(C, F)
    if bias is not None:
        y += bias
    return y
