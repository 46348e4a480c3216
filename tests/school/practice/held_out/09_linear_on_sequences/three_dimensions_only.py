# mistake: unpacks exactly three dimensions, so it fails on any other number of them.
def linear(x, weight, bias=None):
    B, L, C = x.shape
    y = (x.reshape(B * L, C) @ weight.T).reshape(B, L, -1)
    return y if bias is None else y + bias
