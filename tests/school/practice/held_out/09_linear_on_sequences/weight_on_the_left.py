# mistake: puts the weight on the left, as for column vectors, so it is multiplied with the tokens' dimension.
def linear(x, weight, bias=None):
    y = weight @ x
    return y if bias is None else y + bias
