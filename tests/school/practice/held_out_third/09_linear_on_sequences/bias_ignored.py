# mistake: the bias is never added
def linear(x, weight, bias=None):
    return x.matmul(weight.transpose(0, 1))
