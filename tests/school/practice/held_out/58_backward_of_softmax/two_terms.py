# correct: two terms with a dot product by einsum
import torch


def softmax_backward(weights, grad):
    product = weights * grad
    dots = torch.einsum("...s,...s->...", weights, grad).unsqueeze(-1)
    return product - weights * dots
