# mistake: subtracts the plain mean of the gradient instead of the weighted one.
def softmax_backward(weights, grad):
    return weights * (grad - grad.mean(dim=-1, keepdim=True))
