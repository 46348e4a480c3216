# mistake: subtracts the plain mean of the gradients instead of the mean weighted by the weights
def softmax_backward(weights, grad):
    return weights * (grad - grad.mean(dim=-1, keepdim=True))
