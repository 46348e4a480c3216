# mistake: adds the bias without asking whether it is None
def linear(x, weight, bias=None):
    return x @ weight.T + bias
