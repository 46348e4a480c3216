# mistake: never adds the bias.
def linear(x, weight, bias=None):
    return x.matmul(weight.t())
