# mistake: uses the weight as (C, F), as Keras stores it, without transposing
def linear(x, weight, bias=None):
    y = x @ weight
    return y if bias is None else y + bias
