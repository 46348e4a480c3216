# mistake: sums the row without keepdim, so the sums broadcast along the wrong dimension.
def softmax_backward(weights, grad):
    row = (weights * grad).sum(-1)
    return weights * (grad - row)
