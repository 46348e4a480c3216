# mistake: two at once: the sum runs over the whole tensor, and the sign of the bracket is reversed.
def softmax_backward(weights, grad):
    return weights * ((weights * grad).sum() - grad)
