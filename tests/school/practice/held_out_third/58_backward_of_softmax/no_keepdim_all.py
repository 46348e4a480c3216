# mistake: the sum runs over the whole tensor instead of each row
def softmax_backward(weights, grad):
    return weights * (grad - (weights * grad).sum())
