# mistake: only the diagonal of the derivative: w (1 - w) grad
def softmax_backward(weights, grad):
    return weights * (1 - weights) * grad
