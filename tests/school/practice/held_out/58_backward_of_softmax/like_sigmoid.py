# mistake: uses w (1 − w) · grad, only the diagonal of the derivative, as for a sigmoid.
def softmax_backward(weights, grad):
    return grad * weights * (1 - weights)
