# mistake: leaves out the factor w_j in front of the bracket.
def softmax_backward(weights, grad):
    return grad - (grad * weights).sum(-1, keepdim=True)
