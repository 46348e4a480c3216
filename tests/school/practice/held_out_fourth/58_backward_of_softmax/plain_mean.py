# mistake: subtracts the mean of the gradient instead of its mean weighted by the weights
def softmax_backward(weights, grad):
    centre = grad.mean(dim=-1, keepdim=True)
    return weights * (grad - centre)
