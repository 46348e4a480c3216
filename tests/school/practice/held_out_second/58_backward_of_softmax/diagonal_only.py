# mistake: uses only the diagonal of the derivative, w (1 − w), as for sigmoid
def softmax_backward(weights, grad):
    return grad * weights * (1 - weights)
