# mistake: the plain mean of grad is subtracted, not the one weighted by the weights
def softmax_backward(weights, grad):
    return weights * (grad - grad.mean(dim=-1, keepdim=True))
